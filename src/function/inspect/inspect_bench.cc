// What a frame of many flows costs a lane's core in the elements acl and inspect: to classify it, and to judge it five
// batches later, when a device has done its part. 16,384 frames of the heavy tail come again and again, each of another
// flow, as on a queue of `sluice bench inspect`. What the device finds is worked out before; between batches a walk
// through other memory takes the place of the rest of the gateway in the core's caches.
//
// $SLUICE_BENCH_RULES and $SLUICE_BENCH_ACL name files of detection rules, of which those that are commented out count,
// too, and of ClassBench filters; without them both are made up. Metrics: ns a frame, the lower quartile of all
// batches.
#include <benchmark/benchmark.h>
#include <rte_cycles.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/emitter.h"
#include "function/acl/acl.h"
#include "function/inspect/inspect.h"
#include "lookup/acl/classbench.h"
#include "lookup/acl/make_rules.h"
#include "lookup/bench_eal.h"
#include "match/automaton/key_scan.h"
#include "packet/builder.h"
#include "packet/frame_mix.h"
#include "packet/headers.h"
#include "port/replay_options.h"

namespace sluice::function {
namespace {

using lookup::acl::AclRule;
using lookup::acl::Key4;

constexpr std::uint32_t frame_count = 16384, object_bytes = 2304, headroom = 256;
constexpr std::uint32_t batch_frames = 896, batches = 5, burst = 64, rounds = 1500, warm_rounds = 64;
constexpr std::uint32_t lanes = 14;  // of the gateway that tables are made for
constexpr std::size_t huge_page = 2 << 20, other_memory = 2 * huge_page;
constexpr std::uint64_t seed = 2022;

template <typename T>
T must(Expected<T> made) {
  if (made) return std::move(*made);
  std::fprintf(stderr, "inspect_bench: %s\n", made.error().message.c_str());
  std::exit(1);
}

std::uint8_t* huge_pages(std::size_t bytes) {
  const std::size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
  void* const memory = std::aligned_alloc(huge_page, rounded);
  madvise(memory, rounded, MADV_HUGEPAGE);  // speed only
  std::memset(memory, 0, rounded);
  return static_cast<std::uint8_t*>(memory);
}
struct Free {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t, Free>;

std::vector<AclRule> acl_rules() {
  const char* const path = std::getenv("SLUICE_BENCH_ACL");
  if (path == nullptr) return lookup::acl::make_rules(lookup::acl::RuleMix::acl, 10'000, seed);
  std::vector<AclRule> rules = must(lookup::acl::read_classbench(path));
  for (AclRule& rule : rules) rule.action = {};
  return rules;
}

// A path of made-up rules, some of which every fourth frame's text leads to.
std::string made_rules() {
  std::mt19937 random(seed);
  std::string text = "alert tcp any any -> any 80 (content:\"which\"; content:\"none has\"; sid:1;)\n";
  for (unsigned sid = 2; sid < 3000; ++sid) {
    text += "alert tcp any any -> any " + std::to_string(random() % 2 == 0 ? 80 : random() % 65536) + " (content:\"" +
            std::to_string(random()) + "\"; sid:" + std::to_string(sid) + ";)\n";
  }
  static const int file = memfd_create("rules", MFD_CLOEXEC);
  if (ftruncate(file, 0) != 0 || pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    std::exit(1);
  }
  return "/proc/self/fd/" + std::to_string(file);
}

struct Traffic {
  bool tcp;
  std::string payload;  // as the replay port's
  bool keys;            // the device reports those that are there
};

// Distinct ones, among those of the rules that admit such frames.
std::vector<Key4> keys_of(const std::vector<AclRule>& rules, bool tcp) {
  const std::uint8_t protocol = tcp ? packet::protocol_tcp : packet::protocol_udp, flags = tcp ? packet::tcp_ack : 0;
  std::vector<AclRule> admitting;
  std::ranges::copy_if(rules, std::back_inserter(admitting), [&](const AclRule& rule) {
    return rule.is_of(4) && rule.protocol.contains(protocol) && rule.flags.contains(flags);
  });
  std::vector<Key4> keys;
  std::set<std::string> known;
  for (std::uint64_t turn = 0; keys.size() < frame_count; ++turn) {
    for (Key4& key : lookup::acl::make_headers4(admitting.empty() ? rules : admitting, frame_count, seed + turn)) {
      key.protocol = protocol;
      key.flags = flags;
      const bool is_new = known.emplace(reinterpret_cast<const char*>(&key), sizeof key).second;
      if ((is_new || turn > 16) && keys.size() < frame_count) keys.push_back(key);
    }
  }
  return keys;
}

std::string payload_of(const std::vector<std::string>& pieces, std::size_t bytes, std::mt19937_64& random) {
  std::string text;
  while (text.size() < bytes) {
    text += pieces.empty() ? std::string(1, static_cast<char>(random())) : pieces[random() % pieces.size()];
  }
  text.resize(bytes);
  return text;
}

// In objects as mbufs are.
class Frames {
 public:
  Frames(const std::vector<AclRule>& acl, const Traffic& traffic)
      : memory_(huge_pages(std::size_t{frame_count} * object_bytes)) {
    const auto options = must(port::ReplayOptions::parse("replay,payload=" + traffic.payload));
    packet::FrameMix mix = must(packet::FrameMix::make("heavy-tail"));
    std::mt19937_64 random(seed);
    const std::vector<Key4> keys = keys_of(acl, traffic.tcp);
    const auto port = [](const std::uint8_t* at) { return static_cast<std::uint16_t>(at[0] << 8 | at[1]); };
    for (std::uint32_t i = 0; i < frame_count; ++i) {
      packet::PacketBuilder builder;
      builder.ipv4(packet::IpAddress::from_bytes(4, keys[i].source).str(),
                   packet::IpAddress::from_bytes(4, keys[i].destination).str());
      const std::uint16_t source = port(keys[i].source_port), destination = port(keys[i].destination_port);
      traffic.tcp ? builder.tcp(source, destination).tcp_flags(packet::tcp_ack) : builder.udp(source, destination);
      const std::uint32_t size = mix.next(), headers = 14 + 20 + (traffic.tcp ? 20 : 8);
      const std::string text = payload_of(options.pieces, size > headers ? size - headers : 0, random);
      const packet::Bytes frame = builder.payload(packet::Bytes(text.begin(), text.end())).build();
      std::memcpy(data(i), frame.data(), frame.size());
      length_[i] = static_cast<std::uint16_t>(frame.size());
    }
  }
  std::uint8_t* data(std::uint32_t i) const { return memory_.get() + std::size_t{i} * object_bytes + headroom; }
  std::uint16_t length(std::uint32_t i) const { return length_[i]; }
  std::string_view view(std::uint32_t i) const { return {reinterpret_cast<const char*>(data(i)), length(i)}; }

 private:
  Memory memory_;
  std::array<std::uint16_t, frame_count> length_;
};

struct OneBatch {
  OneBatch(const Acl& of_acl, const Inspect& of_inspect, std::uint32_t slot)
      : acl(huge_pages(std::size_t{of_acl.shape().bytes_per_frame} * batch_frames)),
        inspect(huge_pages(std::size_t{of_inspect.shape().bytes_per_frame} * batch_frames)) {
    batch.frame = frame.data();
    batch.length = length.data();
    batch.mbuf = mbuf.data();
    batch.row = row.data();
    batch.segment = segment.data();
    batch.area[acl_slot] = reinterpret_cast<std::byte*>(acl.get());
    batch.area[inspect_slot] = reinterpret_cast<std::byte*>(inspect.get());
    batch.capacity = batch_frames;
    batch.segment_capacity = segment.size();
    batch.slot = slot;
  }
  static constexpr unsigned acl_slot = 0, inspect_slot = 1;  // as of a chain of the two
  std::array<std::uint64_t, batch_frames> frame;
  std::array<std::uint16_t, batch_frames> length;
  std::array<rte_mbuf*, batch_frames> mbuf{};
  std::array<engine::Row, batch_frames> row{};
  std::array<engine::Segment, batch_frames / burst> segment;
  Memory acl, inspect;
  engine::Batch batch{};
  std::uint32_t first = 0;  // of all frames
};

// Ticks of each batch.
struct Work {
  std::vector<std::uint64_t> acl, inspect, judge;
};

class Lane {
 public:
  explicit Lane(const Traffic& traffic) : frames_(std::make_unique<Frames>(acl_rules(), traffic)) {
    lookup::start_bench_eal();
    acl_ = std::make_unique<Acl>(Acl::AclOptions{acl_rules()});
    InspectOptions options;
    const char* const rules = std::getenv("SLUICE_BENCH_RULES");
    options.rules = {rules == nullptr ? made_rules() : rules};
    options.reading.commented_out = true;
    options.inspection.conversations.flows.capacity = (1U << 20) / lanes;
    options.inspection.conversations.extras = (1U << 16) / lanes;
    options.budget = std::chrono::hours(1);
    if (traffic.keys) find_keys(options);
    inspect_ = std::make_unique<Inspect>(std::move(options));
    acl_->place(OneBatch::acl_slot);
    inspect_->place(OneBatch::inspect_slot);
    for (engine::Element* const element : std::initializer_list<engine::Element*>{acl_.get(), inspect_.get()}) {
      if (auto ok = element->prepare({}); !ok) must(Expected<int>(tl::unexpected(ok.error())));
    }
    for (std::uint32_t b = 0; b < batches; ++b) all_.push_back(std::make_unique<OneBatch>(*acl_, *inspect_, b));
    other_.reset(huge_pages(other_memory));
    for (std::uint32_t r = 0; r < warm_rounds; ++r) round();
    work_ = {};
  }
  ~Lane() { inspect_->stopped(); }

  // A batch is forwarded, and another one collected in its place.
  void round() {
    OneBatch& one = *all_[ticket_ % batches];
    if (ticket_ >= batches) forward(one);
    collect(one);
    be_device(one);
    ++ticket_;
  }
  const Work& work() const { return work_; }
  double with_keys() const {
    return static_cast<double>(std::ranges::count_if(keys_, [](const auto& keys) { return !keys.empty(); })) /
           frame_count;
  }

 private:
  void find_keys(const InspectOptions& options) {
    const auto rules = must(InspectionRules::make(must(match::read_rules(options.rules, options.reading))));
    keys_.resize(frame_count);
    for (std::uint32_t i = 0; i < frame_count; ++i) {
      const match::PacketFacts facts = match::facts_of(frames_->view(i));
      std::vector<std::uint32_t>& keys = keys_[i];
      match::scan_keys(rules->gram_table().view(), facts.payload, 0, rules->detector().classes().class_of(facts), keys);
      std::ranges::sort(keys);
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    }
  }

  void collect(OneBatch& one) {
    engine::Batch& batch = one.batch;
    batch.count = batch.segments = 0;
    batch.bytes = 0;
    batch.ticket = ticket_;
    one.first = next_;
    std::uint64_t keying = 0, classifying = 0;
    while (batch.count < batch_frames) {
      const std::uint32_t first = batch.count;
      batch.segment[batch.segments++] = {first, 0, rte_rdtsc(), 0, 0};
      for (std::uint32_t i = 0; i < burst; ++i, next_ = (next_ + 1) % frame_count) {
        batch.frame[batch.count] = reinterpret_cast<std::uint64_t>(frames_->data(next_));
        batch.row[batch.count] = {};
        batch.length[batch.count++] = frames_->length(next_);
        batch.bytes += frames_->length(next_);
        benchmark::DoNotOptimize(*frames_->data(next_));  // as who routes has read it
      }
      const std::uint64_t collected = rte_rdtsc();
      acl_->classify(batch, {first, burst});
      const std::uint64_t keyed = rte_rdtsc();
      inspect_->classify(batch, {first, burst});
      keying += keyed - collected;
      classifying += rte_rdtsc() - keyed;
    }
    work_.acl.push_back(keying);
    work_.inspect.push_back(classifying);
  }

  void be_device(OneBatch& one) {
    acl_->compute(one.batch, {0, batch_frames});
    inspect_->null_result(one.batch);
    for (std::uint32_t i = 0; i < batch_frames && !keys_.empty(); ++i) {
      inspect_->put_keys(one.batch, i, keys_[(one.first + i) % frame_count]);
    }
    for (std::size_t at = 0; at < other_memory; at += 64) benchmark::DoNotOptimize(other_.get()[at]);
  }

  void forward(OneBatch& one) {
    const std::uint64_t begin = rte_rdtsc();
    for (std::uint32_t first = 0; first < batch_frames; first += burst) {
      acl_->apply(one.batch, {first, burst}, out_);
      inspect_->apply(one.batch, {first, burst}, out_);
    }
    benchmark::DoNotOptimize(one.row.data());
    work_.judge.push_back(rte_rdtsc() - begin);
  }

  std::unique_ptr<Frames> frames_;
  std::unique_ptr<Acl> acl_;
  std::unique_ptr<Inspect> inspect_;
  std::vector<std::unique_ptr<OneBatch>> all_;
  std::vector<std::vector<std::uint32_t>> keys_;  // by frame
  Memory other_;
  std::uint64_t ticket_ = 0;
  std::uint32_t next_ = 0;
  Work work_;
  engine::LaneCounters counters_;
  engine::Emitter out_{{}, 0, counters_, nullptr};  // no rule answers
};

double ns_a_frame(std::vector<std::uint64_t> ticks) {
  const auto quartile = ticks.begin() + static_cast<std::ptrdiff_t>(ticks.size() / 4);
  std::nth_element(ticks.begin(), quartile, ticks.end());
  return static_cast<double>(*quartile) * 1e9 / static_cast<double>(rte_get_tsc_hz()) / batch_frames;
}

void lane_frames(benchmark::State& state, const Traffic& traffic) {
  Lane lane(traffic);
  for (auto _ : state) lane.round();
  state.counters["acl"] = ns_a_frame(lane.work().acl);
  state.counters["classify"] = ns_a_frame(lane.work().inspect);
  state.counters["judge"] = ns_a_frame(lane.work().judge);
  state.counters["with_keys"] = lane.with_keys();
}

BENCHMARK_CAPTURE(lane_frames, udp_text, Traffic{false, "text", true})->Iterations(rounds);
BENCHMARK_CAPTURE(lane_frames, tcp_text, Traffic{true, "text", true})->Iterations(rounds);
BENCHMARK_CAPTURE(lane_frames, tcp_text_without_keys, Traffic{true, "text", false})->Iterations(rounds);
BENCHMARK_CAPTURE(lane_frames, tcp_random, Traffic{true, "random", true})->Iterations(rounds);

}  // namespace
}  // namespace sluice::function
