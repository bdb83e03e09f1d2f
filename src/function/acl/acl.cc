#include "function/acl/acl.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <tuple>
#include <utility>

#include "device/gpu.h"
#include "engine/function.h"
#include "engine/options.h"
#include "function/acl/frame_key.h"
#include "function/acl/frame_place.h"
#include "function/capsule/capsule.h"

namespace sluice::function {
namespace {

using lookup::acl::ActionKind;
using lookup::acl::Key4;
using lookup::acl::Key6;
using lookup::acl::no_match;
using lookup::acl::RuleIndex;

// How long a reload waits for the old list to be left, before it leaves that to the next one.
constexpr auto patience = std::chrono::milliseconds(200);
// Frames ahead of the one that is judged whose rules' counters are fetched, and, a cache line at a time, whose rules:
// a device has written them.
constexpr std::uint32_t counters_ahead = 8, rules_ahead = 64, rules_of_line = 64 / sizeof(RuleIndex);

// Frames of a burst that comes next, for which there is to be room in the cache.
constexpr std::uint32_t next_burst = 64;

struct alignas(64) Header {
  const RuleSet* set;  // that the rules below are of
  std::uint32_t keys4, keys6;
};
// A byte for each frame of the smallest batch holds it.
constexpr std::uint32_t header_per_frame = 1;
static_assert(sizeof(Header) <= header_per_frame * engine::batch_range.least);

constexpr std::uint32_t per_frame = header_per_frame + sizeof(Key4) + sizeof(Key6) + 3 * sizeof(std::uint32_t);

// A batch's area. Keys stand close together, by family, in the order of frames.
struct Area {
  Area(std::byte* area, std::uint32_t capacity)
      : header(reinterpret_cast<Header*>(area)),
        keys4(reinterpret_cast<Key4*>(area + sizeof(Header))),
        keys6(reinterpret_cast<Key6*>(keys4 + capacity)),
        rules4(reinterpret_cast<RuleIndex*>(keys6 + capacity)),
        rules6(rules4 + capacity),
        places(rules6 + capacity) {}

  // Of a frame with a key.
  RuleIndex rule(std::uint32_t place) const {
    return (place & place_is_key6) != 0 ? rules6[place & ~place_is_key6] : rules4[place];
  }

  Header* header;
  Key4* keys4;
  Key6* keys6;
  RuleIndex* rules4;  // by key
  RuleIndex* rules6;
  std::uint32_t* places;  // by frame: its key (frame_place.h)
};

std::size_t reader_of(const engine::Batch& batch) {
  return std::size_t{batch.lane} * engine::batches_range.most + batch.slot;
}

// Counts the frame and does what the rule says.
packet::Reason act(const RuleSet& set, RuleIndex rule, std::uint32_t writer, std::uint8_t* frame, std::uint32_t length,
                   std::uint64_t tsc) {
  const std::uint32_t place = set.place(rule);
  set.hits->add(writer, place, length);
  switch (set.kinds[place]) {
    case ActionKind::permit:
      break;
    case ActionKind::deny:
      return acl_denied;
    case ActionKind::mark:
      set_dscp(frame, length, set.verdicts[place].dscp);
      break;
    case ActionKind::police:
      return set.verdicts[place].policer->take(length, tsc) ? packet::no_reason : acl_policed;
  }
  return packet::no_reason;
}

// The keys of frames [first, first + count) of one family.
struct Range {
  std::uint32_t first = 0, end = 0;
  void add(std::uint32_t key) {
    first = end == 0 ? key : first;
    end = key + 1;
  }
};

}  // namespace

std::uint32_t Acl::bytes_per_frame() const {
  return per_frame;
}

Expected<void> Acl::prepare(const engine::LanePlan& plan) {
  lanes_ = plan.lanes;
  current_.emplace(std::size_t{lanes_} * (engine::batches_range.most + 1));
  // A lane's collector and its forwarder are two threads, or one.
  transit_writers_ = plan.forwarders ? lanes_ : 0;
  hits_.emplace(transit_writers_ + lanes_);
  auto built = build(options_, 1);
  if (!built) return tl::unexpected(built.error());
  publish(std::move(*built));
  return {};
}

Expected<Acl::Built> Acl::build(const AclOptions& options, std::uint64_t generation) const {
  Built built;
  built.hits = hits_->next(options.rules, options.deny_others);
  auto set = RuleSet::create(options.rules, options.deny_others, generation, built.hits->counters);
  if (!set) return make_error("[acl] " + set.error().message);
  built.set = std::move(*set);
  return built;
}

void Acl::publish(Built built) {
  const RuleSet* const old = newest_;
  newest_ = built.set.get();
  if (old != nullptr) old->next.store(newest_, std::memory_order_release);
  hits_->enter(std::move(built.hits));
  current_->publish(std::move(built.set));
}

Expected<void> Acl::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  if (!plan.launches) return {};
  auto made = lookup::acl::GpuClassifier::create(gpu, options_.rules);
  if (!made) return make_error("[acl] " + made.error().message);
  gpu_ = &gpu;
  gpu_rules_ = std::move(*made);
  on_device_ = newest_;
  device_generation_.store(on_device_->generation, std::memory_order_release);
  return {};
}

void Acl::describe(const engine::Batch& batch, std::byte* area, std::uint32_t first) {
  const Area a(area, batch.capacity);
  if (first == 0) *a.header = {};
  std::uint32_t n4 = a.header->keys4, n6 = a.header->keys6;
  for (std::uint32_t i = first; i < batch.count; ++i) {
    const auto* const frame = reinterpret_cast<const std::uint8_t*>(batch.frame[i]);
    if (make_plain_key(frame, batch.length[i], a.keys4[n4])) [[likely]] {
      a.places[i] = n4++;
      continue;
    }
    switch (make_key(frame, batch.length[i], a.keys4[n4], a.keys6[n6])) {
      case KeyKind::ipv4:
        a.places[i] = n4++;
        break;
      case KeyKind::ipv6:
        a.places[i] = n6++ | place_is_key6;
        break;
      case KeyKind::not_ip:
        a.places[i] = place_not_ip;
        break;
      case KeyKind::malformed:
        a.places[i] = place_malformed;
        break;
    }
  }
  a.header->keys4 = n4;
  a.header->keys6 = n6;
  // A device has read these places, and owns them as much as this core does.
  sluice::prefetch_for_write(a.keys4 + n4, next_burst * sizeof(Key4));
  sluice::prefetch_for_write(a.places + batch.count, next_burst * sizeof(std::uint32_t));
}

Expected<void> Acl::launch(const engine::Batch& batch, std::byte* area, device::GpuStream& stream) {
  const Area a(area, batch.capacity);
  current_->pin(reader_of(batch), on_device_);
  a.header->set = on_device_;
  return gpu_rules_->classify(stream, a.keys4, a.rules4, a.header->keys4, a.keys6, a.rules6, a.header->keys6);
}

bool Acl::join(const engine::Batch& batch, std::byte* area, CapsuleWork& work) {
  if (work.classify || work.match) return false;
  const Area a(area, batch.capacity);
  current_->pin(reader_of(batch), on_device_);
  a.header->set = on_device_;
  work.classify = {.view = gpu_rules_->view(),
                   .deny_others = on_device_->others() == ActionKind::deny,
                   .in_order = a.header->keys4 == batch.count,
                   .place = a.places,
                   .keys4 = a.keys4,
                   .keys6 = a.keys6,
                   .rules4 = a.rules4,
                   .rules6 = a.rules6};
  return true;
}

void Acl::compute(const engine::Batch& batch, std::byte* area, std::uint32_t first, std::uint32_t count) {
  const Area a(area, batch.capacity);
  if (first == 0) a.header->set = current_->pin(reader_of(batch));
  Range four, six;
  if (first == 0 && count == batch.count) {
    four.end = a.header->keys4;
    six.end = a.header->keys6;
  } else {
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (const std::uint32_t place = a.places[i]; place < place_malformed) {
        ((place & place_is_key6) != 0 ? six : four).add(place & ~place_is_key6);
      }
    }
  }
  const lookup::acl::Classifier& classifier = *a.header->set->classifier;
  if (four.end != 0) classifier.classify4(a.keys4 + four.first, a.rules4 + four.first, four.end - four.first);
  if (six.end != 0) classifier.classify6(a.keys6 + six.first, a.rules6 + six.first, six.end - six.first);
}

void Acl::stand_in(const engine::Batch& batch, std::byte* area) {
  const Area a(area, batch.capacity);
  std::fill_n(a.places, batch.count, place_not_ip);
}

packet::Reason Acl::judge(const engine::Batch& batch, std::byte* area, std::uint32_t i, std::uint64_t tsc) {
  const Area a(area, batch.capacity);
  const std::uint32_t place = a.places[i];
  if (i % rules_of_line == 0) sluice::prefetch(a.rules4 + i + rules_ahead);
  if (const std::uint32_t n = i + counters_ahead; n < batch.count && a.places[n] < place_malformed) {
    a.header->set->prefetch(a.rule(a.places[n]), batch.lane);
  }
  if (place >= place_malformed) return place == place_malformed ? acl_malformed : packet::no_reason;
  return act(*a.header->set, a.rule(place), batch.lane, reinterpret_cast<std::uint8_t*>(batch.frame[i]),
             batch.length[i], tsc);
}

packet::Reason Acl::judge_transit(std::uint32_t lane, std::uint8_t* frame, std::uint32_t length, std::uint64_t tsc) {
  Key4 key4;
  Key6 key6;
  const KeyKind kind = make_key(frame, length, key4, key6);
  if (kind == KeyKind::not_ip) return packet::no_reason;
  if (kind == KeyKind::malformed) return acl_malformed;
  const auto set = current_->read(std::size_t{lanes_} * engine::batches_range.most + lane);
  RuleIndex rule = no_match;
  if (kind == KeyKind::ipv4) {
    set->classifier->classify4(&key4, &rule, 1);
  } else {
    set->classifier->classify6(&key6, &rule, 1);
  }
  return act(*set, rule, transit_writers_ + lane, frame, length, tsc);
}

void Acl::judged(const engine::Batch& batch, std::byte* /*area*/) {
  current_->unpin(reader_of(batch));
}

// The list that the GPU's tables are of from now on: those before it are used by no further launch.
Expected<void> Acl::begin_cycle(device::GpuStream& stream) {
  if (auto ok = gpu_rules_->sync(stream); !ok) return ok;
  if (on_device_->generation == gpu_rules_->generation()) [[likely]]
    return {};
  while (on_device_->generation != gpu_rules_->generation()) {
    on_device_ = on_device_->next.load(std::memory_order_acquire);
  }
  device_generation_.store(on_device_->generation, std::memory_order_release);
  return {};
}

std::size_t Acl::reclaim() {
  // A lost GPU follows no more, and is given nothing more.
  const bool follows = gpu_rules_ && !gpu_->lost();
  const std::uint64_t from = device_generation_.load(std::memory_order_acquire);
  const std::size_t left = current_->reclaim([&](const RuleSet& set) { return follows && set.generation >= from; });
  hits_->fold();
  return left;
}

Expected<engine::Stage::Change> Acl::reload(Stage& fresh) {
  const AclOptions& wanted = static_cast<const Acl&>(fresh).options_;
  reclaim();
  auto made = build(wanted, newest_->generation + 1);
  if (!made) return tl::unexpected(made.error());
  struct Next {
    Built list;
    std::unique_ptr<lookup::acl::GpuClassifier::Built> built;
  };
  auto next = std::make_shared<Next>();
  next->list = std::move(*made);
  if (gpu_rules_ && !gpu_->lost()) {
    auto built = gpu_rules_->build(wanted.rules);
    if (!built) return make_error("[acl] " + built.error().message);
    next->built = std::move(*built);
  }
  const std::size_t count = wanted.rules.size();
  return Change{std::to_string(count) + " ACL rule" + (count == 1 ? " is" : "s are") + " in force", [this, next] {
                  publish(std::move(next->list));
                  if (next->built) gpu_rules_->commit(std::move(next->built));
                  const auto end = std::chrono::steady_clock::now() + patience;
                  while (reclaim() != 0 && std::chrono::steady_clock::now() < end) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  }
                }};
}

std::vector<engine::Figure> Acl::figures() const {
  struct Texts {
    engine::Figure frames, bytes;
  };
  static constexpr std::array<Texts, std::tuple_size_v<RuleHits::Totals>> texts = {{
      {{"acl_permit_frames", "frames that an ACL rule with the action permit decided"},
       {"acl_permit_bytes", "the bytes of these frames"}},
      {{"acl_deny_frames", "frames that an ACL rule with the action deny decided"},
       {"acl_deny_bytes", "the bytes of these frames"}},
      {{"acl_mark_frames", "frames that an ACL rule with the action mark decided"},
       {"acl_mark_bytes", "the bytes of these frames"}},
      {{"acl_police_frames", "frames that an ACL rule with the action police decided, with those that it dropped"},
       {"acl_police_bytes", "the bytes of these frames"}},
      {{"acl_default_frames", "frames that no ACL rule matched"}, {"acl_default_bytes", "the bytes of these frames"}},
  }};
  if (!hits_) return {};
  std::vector<engine::Figure> all;
  const RuleHits::Totals totals = hits_->totals();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    all.push_back(texts[i].frames);
    all.back().value = totals[i].frames;
    all.push_back(texts[i].bytes);
    all.back().value = totals[i].bytes;
  }
  return all;
}

}  // namespace sluice::function
