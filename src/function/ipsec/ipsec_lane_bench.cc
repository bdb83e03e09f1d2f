// What a lane's core takes for a packet of an SA in the element "ipsec" where a GPU does the cryptography: frames and
// their mbufs lie in memory, as a device has left them, and nothing is computed. By SAs, packets being of any of them.
//
//   collect  admit() and classify() of the first pass
//   choose   out: choose(), the row's copy and classify() of the pass of departures
//   finish   apply(), and leave() of what has come out
#include <benchmark/benchmark.h>
#include <emmintrin.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/prefetch.h"
#include "engine/batch.h"
#include "engine/emitter.h"
#include "engine/pipeline.h"
#include "function/ipsec/ipsec.h"
#include "ipsec/proposal.h"
#include "lookup/bench_eal.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using ipsec::Direction;

constexpr std::uint32_t frames_a_batch = 1152, burst = 32, frame_bytes = 2048, headroom = 128;
constexpr std::uint32_t buffer_bytes = headroom + frame_bytes, ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint16_t in_port = 0, out_port = 1;

packet::IpAddress host(std::uint32_t tunnel) {
  return packet::IpAddress::v4(0xac100000 + tunnel);
}
packet::IpAddress far_end(std::uint32_t tunnel) {
  return packet::IpAddress::v4(0xc6120000 + tunnel);
}
packet::IpAddress here() {
  return packet::IpAddress::v4(0xc0000201);
}
std::uint32_t spi_of(std::uint32_t tunnel) {
  return 0x1000 + tunnel;
}

ipsec::SaSettings sa_of(Direction direction, std::uint32_t tunnel) {
  static const ipsec::Proposal proposal = ipsec::parse_proposal("null-sha1", ipsec::Protocol::esp).value();
  const std::vector<std::uint8_t> key(proposal.auth_key_length, 7);
  const bool out = direction == Direction::out;
  ipsec::SaSettings sa;
  sa.id = {.destination = out ? far_end(tunnel) : here(), .spi = spi_of(tunnel), .protocol = ipsec::Protocol::esp};
  sa.source = out ? here() : far_end(tunnel);
  sa.direction = direction;
  sa.reqid = tunnel + 1;
  sa.transform = ipsec::make_transform(proposal, {}, key).value();
  return sa;
}

ipsec::Policy policy_of(Direction direction, std::uint32_t tunnel) {
  const bool out = direction == Direction::out;
  ipsec::Policy policy{.direction = direction, .selector = {}};
  policy.selector.source = packet::IpPrefix::of(packet::IpAddress::v4(10U << 24), 8);
  policy.selector.destination = packet::IpPrefix::host(host(tunnel));
  if (!out) std::swap(policy.selector.source, policy.selector.destination);
  policy.templates = {{.protocol = ipsec::Protocol::esp,
                       .mode = ipsec::Mode::tunnel,
                       .source = out ? here() : far_end(tunnel),
                       .destination = out ? far_end(tunnel) : here(),
                       .reqid = tunnel + 1}};
  return policy;
}

IpsecOptions options_of(std::uint32_t tunnels) {
  IpsecOptions options;
  options.max_sas = options.max_policies = 2 * tunnels;
  for (std::uint32_t tunnel = 0; tunnel < tunnels; ++tunnel) {
    for (const Direction direction : {Direction::out, Direction::in}) {
      options.sas.push_back(sa_of(direction, tunnel));
      options.policies.push_back(policy_of(direction, tunnel));
    }
  }
  return options;
}

// A batch with memory of its own, without frames.
struct OneBatch {
  explicit OneBatch(std::uint32_t bytes_per_frame)
      : area(static_cast<std::byte*>(
                 std::aligned_alloc(64, (std::size_t{frames_a_batch} * bytes_per_frame + 63) / 64 * 64)),
             &std::free) {
    batch.area[0] = area.get();
    batch.frame = addresses.data();
    batch.length = lengths.data();
    batch.mbuf = mbufs.data();
    batch.row = rows.data();
    batch.capacity = frames_a_batch;
  }
  void add(rte_mbuf* one, std::uint16_t port) {
    const std::uint32_t i = batch.count++;
    mbufs[i] = one;
    addresses[i] = reinterpret_cast<std::uint64_t>(rte_pktmbuf_mtod(one, const void*));
    lengths[i] = one->data_len;
    rows[i] = {engine::Fate::goes_on, packet::no_reason, port};
  }
  std::unique_ptr<std::byte, decltype(&std::free)> area;
  std::vector<rte_mbuf*> mbufs = std::vector<rte_mbuf*>(frames_a_batch);
  std::vector<std::uint64_t> addresses = std::vector<std::uint64_t>(frames_a_batch);
  std::vector<std::uint16_t> lengths = std::vector<std::uint16_t>(frames_a_batch);
  std::vector<engine::Row> rows = std::vector<engine::Row>(frames_a_batch);
  engine::Batch batch;
};

class Bed {
 public:
  struct Took {
    double collect = 0, choose = 0, finish = 0;  // ns a frame
    std::uint32_t left = 0;
  };

  Bed(std::uint32_t tunnels, std::uint32_t packet_bytes, Direction direction)
      : tunnels_(tunnels),
        bytes_(packet_bytes),
        in_(direction == Direction::in),
        element_(options_of(tunnels), ports_) {
    if (!element_.prepare({.lanes = 1})) std::abort();
    came_ = std::make_unique<OneBatch>(element_.shape().bytes_per_frame);
    departs_ = std::make_unique<OneBatch>(element_.shape().bytes_per_frame);
    departs_->batch.departs = true;
    departs_->batch.pass = 2;
    buffers_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(4096, std::size_t{frames_a_batch} * buffer_bytes)));
    for (std::uint32_t i = 0; i < frames_a_batch; ++i) {
      memory_[i].buf_addr = buffers_.get() + std::size_t{i} * buffer_bytes;
      memory_[i].buf_len = buffer_bytes;
      memory_[i].nb_segs = 1;
    }
  }

  Took round() {
    receive();
    Took took;
    took.collect = in_bursts(burst, [&](engine::Span span) {
      for (std::uint32_t i = span.first; i < span.end(); ++i) prefetch(came_->batch.data(i));
      came_->batch.count = span.end();
      element_.admit(came_->batch, span);
      element_.classify(came_->batch, span);
    });
    element_.null_result(came_->batch);
    write_back();
    if (in_) {
      took.finish = finish(*came_, took.left);
      return took;
    }
    double untimed = 0;
    element_.apply(came_->batch, {0, frames_a_batch}, emitter_);
    came_->batch.pass = 1;
    write_back();
    took.choose = in_bursts(burst, [&](engine::Span span) {
      untimed += route(span);
      element_.choose(came_->batch, span, came_by_.data(), emitter_);
      depart(span);
    });
    took.choose -= untimed / frames_a_batch;
    element_.null_result(departs_->batch);
    write_back();
    took.finish = finish(*departs_, took.left);
    return took;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Ns = std::chrono::duration<double, std::nano>;

  // ns a frame.
  template <class Do>
  static double in_bursts(std::uint32_t length, const Do& act) {
    const auto begin = Clock::now();
    for (std::uint32_t first = 0; first < frames_a_batch; first += length) act(engine::Span{first, length});
    return Ns(Clock::now() - begin).count() / frames_a_batch;
  }

  // As behind the router, which has had the frame's headers in its hands. Returns the ns that this took.
  double route(engine::Span span) {
    const auto begin = Clock::now();
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      benchmark::DoNotOptimize(came_->batch.data(i)[ethernet + 8]);
      came_->batch.send(i, out_port);
    }
    return Ns(Clock::now() - begin).count();
  }
  void depart(engine::Span span) {
    engine::Batch &from = came_->batch, &to = departs_->batch;
    const std::uint32_t before = to.count;
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (from.row[i].fate != engine::Fate::later) continue;
      const std::uint32_t at = to.count++;
      to.mbuf[at] = from.mbuf[i];
      to.frame[at] = from.frame[i];
      to.length[at] = from.length[i];
      to.row[at] = from.row[i];
      to.row[at].fate = engine::Fate::goes_on;
    }
    if (to.count != before) element_.classify(to, {before, to.count - before});
  }
  double finish(OneBatch& one, std::uint32_t& left) {
    return in_bursts(burst, [&](engine::Span span) {
      if (span.end() > one.batch.count) return;
      element_.apply(one.batch, span, emitter_);
      std::array<rte_mbuf*, burst> frames;
      std::uint32_t count = 0;
      for (std::uint32_t i = span.first; i < span.end(); ++i) {
        if (one.batch.row[i].fate == (in_ ? engine::Fate::later : engine::Fate::goes_on)) {
          frames[count++] = one.batch.mbuf[i];
        }
      }
      left += element_.leave(0, out_port, frames.data(), count, emitter_);
    });
  }

  // The next packets, in memory and in no cache.
  void receive() {
    came_->batch.count = departs_->batch.count = 0;
    came_->batch.pass = 0;
    for (std::uint32_t i = 0; i < frames_a_batch; ++i) {
      random_ = random_ * 1664525 + 1013904223;
      const auto tunnel = static_cast<std::uint32_t>(std::uint64_t{random_} * tunnels_ >> 32);
      rte_mbuf& one = memory_[i];
      one.data_off = headroom;
      one.ol_flags = 0;
      const packet::Bytes frame = in_ ? sealed(tunnel) : clear("10.0.0.7", host(tunnel).str());
      std::ranges::copy(frame, rte_pktmbuf_mtod(&one, std::uint8_t*));
      one.data_len = static_cast<std::uint16_t>(frame.size());
      one.pkt_len = one.data_len;
      came_->add(&one, in_port);
    }
    came_->batch.count = 0;
    write_back();
  }
  packet::Bytes clear(const std::string& from, const std::string& to) const {
    return packet::PacketBuilder().ipv4(from, to).udp(5000, 6000).payload(packet::Bytes(bytes_ - 42, 0x2a)).build();
  }
  // With the null cipher, so nothing needs to be deciphered.
  packet::Bytes sealed(std::uint32_t tunnel) {
    const packet::Bytes inside = clear(host(tunnel).str(), "10.0.0.7");
    packet::Bytes esp(8);
    const std::uint32_t spi = packet::be32(spi_of(tunnel)), number = packet::be32(++numbers_[tunnel]);
    std::memcpy(esp.data(), &spi, sizeof spi);
    std::memcpy(esp.data() + 4, &number, sizeof number);
    esp.insert(esp.end(), inside.begin() + ethernet, inside.end());
    std::uint8_t pad = 0;
    while ((esp.size() + 2) % 4 != 0) esp.push_back(++pad);
    esp.push_back(pad);
    esp.push_back(packet::protocol_ipv4);
    esp.resize(esp.size() + 12);
    return packet::PacketBuilder()
        .ipv4(far_end(tunnel).str(), here().str())
        .protocol(packet::protocol_esp)
        .payload(esp)
        .build();
  }
  void write_back() {
    for (rte_mbuf& one : memory_) {
      const auto* const buffer = static_cast<const std::uint8_t*>(one.buf_addr);
      for (std::size_t b = 0; b < headroom + bytes_ + 128; b += 64) _mm_clflush(buffer + b);
      for (std::size_t b = 0; b < sizeof one; b += 64) _mm_clflush(reinterpret_cast<const char*>(&one) + b);
    }
    _mm_mfence();
  }

  const std::uint32_t tunnels_, bytes_;
  const bool in_;
  const engine::PortTable ports_{{{.name = "in", .mac = {}, .peer = 1}, {.name = "out", .mac = {}, .peer = 0}}};
  Ipsec element_;
  std::unique_ptr<OneBatch> came_, departs_;
  std::unique_ptr<std::uint8_t, decltype(&std::free)> buffers_{nullptr, &std::free};
  std::vector<rte_mbuf> memory_ = std::vector<rte_mbuf>(frames_a_batch);
  std::vector<std::uint16_t> came_by_ = std::vector<std::uint16_t>(burst, in_port);
  std::vector<std::uint32_t> numbers_ = std::vector<std::uint32_t>(tunnels_);
  engine::LaneCounters counters_;
  engine::Emitter emitter_{{nullptr, nullptr}, 0, counters_, nullptr};
  std::uint32_t random_ = 1;
};

void a_lanes_core(benchmark::State& state, Direction direction) {
  lookup::start_bench_eal();
  Bed bed(static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1)), direction);
  std::vector<double> collect, choose, finish;
  for (auto _ : state) {
    const Bed::Took took = bed.round();
    if (took.left != frames_a_batch) state.SkipWithError("packets did not leave");
    collect.push_back(took.collect);
    choose.push_back(took.choose);
    finish.push_back(took.finish);
    state.SetIterationTime((took.collect + took.choose + took.finish) * frames_a_batch / 1e9);
  }
  // Medians: the machine may do other things meanwhile.
  for (const auto& [name, times] :
       {std::pair{"collect_ns", &collect}, std::pair{"choose_ns", &choose}, std::pair{"finish_ns", &finish}}) {
    std::ranges::nth_element(*times, times->begin() + static_cast<std::ptrdiff_t>(times->size() / 2));
    state.counters[name] = (*times)[times->size() / 2];
  }
}
constexpr int rounds = 60;
BENCHMARK_CAPTURE(a_lanes_core, out, Direction::out)
    ->ArgsProduct({{1, 1000, 100'000}, {64, 1408}})
    ->Iterations(rounds)
    ->UseManualTime();
BENCHMARK_CAPTURE(a_lanes_core, in, Direction::in)
    ->ArgsProduct({{1, 1000, 100'000}, {64, 1408}})
    ->Iterations(rounds)
    ->UseManualTime();

}  // namespace
}  // namespace sluice::function
