// What a lane's core takes for a frame of a stream in the element "srtp", collected and forwarded, where a GPU does the
// cryptography: frames lie in memory, as a device has left them, and nothing is computed. By streams of the lane. If
// there is a GPU (or the shim) it is attached, else it is as on a core alone.
#include <benchmark/benchmark.h>
#include <emmintrin.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/prefetch.h"
#include "device/gpu.h"
#include "engine/batch.h"
#include "engine/element.h"
#include "engine/emitter.h"
#include "function/srtp/srtp.h"
#include "packet/builder.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t frames_a_batch = 1152, burst = 32, frame_bytes = 2048, rtp_bytes = 1328, headroom = 128;
constexpr std::uint32_t buffer_bytes = headroom + frame_bytes;

packet::IpAddress source_of(std::uint32_t stream) {
  const std::uint8_t bytes[] = {10, static_cast<std::uint8_t>(stream >> 16), static_cast<std::uint8_t>(stream >> 8),
                                static_cast<std::uint8_t>(stream)};
  return packet::IpAddress::from_bytes(4, bytes);
}

std::unique_ptr<Srtp> make_element(std::uint32_t streams) {
  constexpr std::uint8_t to[] = {198, 18, 0, 2};
  const std::string key = "1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
  Srtp::SrtpOptions options;
  options.max_keys = streams;
  for (std::uint32_t i = 0; i < streams; ++i) {
    MediaStreamSettings one;
    one.name = "stream " + std::to_string(i);
    one.key = media_key(source_of(i), 5004, packet::IpAddress::from_bytes(4, to), 6000);
    one.carries = Carries::rtp;
    one.max_ssrcs = 1;
    one.crypto = media::sdp::parse_crypto(key).value();
    options.streams.push_back(std::move(one));
  }
  return std::make_unique<Srtp>(std::move(options));
}

class Bed {
 public:
  explicit Bed(std::uint32_t streams) : streams_(streams), element_(make_element(streams)) {
    if (!element_->prepare({.lanes = 1})) std::abort();
    if (auto gpu = device::Gpu::open(0, 1)) {
      gpu_ = std::move(*gpu);
      if (!element_->attach(*gpu_, {1, 1, frames_a_batch, frame_bytes})) std::abort();
    }
    const std::size_t area = std::size_t{frames_a_batch} * element_->shape().bytes_per_frame;
    batch_.area[0] = static_cast<std::byte*>(std::aligned_alloc(64, (area + 63) / 64 * 64));
    buffers_ = static_cast<std::uint8_t*>(std::aligned_alloc(4096, std::size_t{frames_a_batch} * buffer_bytes));
    for (std::uint32_t i = 0; i < frames_a_batch; ++i) {
      mbufs_.push_back(&memory_[i]);
      memory_[i].buf_addr = buffers_ + std::size_t{i} * buffer_bytes;
      memory_[i].buf_len = buffer_bytes;
      memory_[i].data_off = headroom;
      addresses_.push_back(reinterpret_cast<std::uint64_t>(memory_[i].buf_addr) + headroom);
    }
    batch_.frame = addresses_.data();
    batch_.length = lengths_.data();
    batch_.mbuf = mbufs_.data();
    batch_.row = rows_.data();
    batch_.capacity = frames_a_batch;
  }
  ~Bed() {
    std::free(batch_.area[0]);
    std::free(buffers_);
  }
  Bed(const Bed&) = delete;

  bool on_device() const { return gpu_ != nullptr; }
  // The first packet of a stream is checked by the core.
  bool all_have_begun() const { return next_ >= streams_; }
  // The next packet of the next streams, in memory and in no cache.
  void receive() {
    for (std::uint32_t i = 0; i < frames_a_batch; ++i) {
      const std::uint32_t stream = next_ % streams_, sequence = next_ / streams_;
      ++next_;
      packet::Bytes rtp(rtp_bytes, 0x2a);  // the SSRC, too
      rtp[0] = 0x80;
      rtp[1] = 96;
      rtp[2] = static_cast<std::uint8_t>(sequence >> 8);
      rtp[3] = static_cast<std::uint8_t>(sequence);
      const packet::Bytes frame =
          packet::PacketBuilder().ipv4(source_of(stream).str(), "198.18.0.2").udp(5004, 6000).payload(rtp).build();
      auto* const at = reinterpret_cast<std::uint8_t*>(addresses_[i]);
      std::copy(frame.begin(), frame.end(), at);
      lengths_[i] = memory_[i].data_len = static_cast<std::uint16_t>(frame.size());
      memory_[i].pkt_len = lengths_[i];
      for (std::size_t b = 0; b < frame.size() + 64; b += 64) _mm_clflush(at + b);
      _mm_clflush(&memory_[i]);
    }
    batch_.count = 0;
    std::ranges::fill(rows_, engine::Row{});
    _mm_mfence();
  }
  void collect() {
    while (batch_.count < frames_a_batch) {
      const std::uint32_t first = batch_.count;
      for (std::uint32_t i = first; i < first + burst; ++i) prefetch(rte_pktmbuf_mtod(mbufs_[i], const void*));
      batch_.count += burst;
      element_->classify(batch_, {first, burst});
    }
  }
  // As if a device had done it, after a time in which the lane did other things.
  void null_result() {
    element_->null_result(batch_);
    for (std::uint32_t i = 0; i < frames_a_batch; ++i) {
      const auto* const at = reinterpret_cast<const std::uint8_t*>(addresses_[i]);
      for (std::size_t b = 0; b < lengths_[i] + 64U; b += 64) _mm_clflush(at + b);
      _mm_clflush(&memory_[i]);
    }
    _mm_mfence();
  }
  std::uint32_t forward() {
    std::uint32_t passed = 0;
    element_->apply(batch_, {0, frames_a_batch}, emitter_);
    for (std::uint32_t i = 0; i < frames_a_batch; ++i) passed += batch_.goes_on(i) ? 1 : 0;
    return passed;
  }

 private:
  const std::uint32_t streams_;
  std::unique_ptr<device::Gpu> gpu_;
  std::unique_ptr<Srtp> element_;
  std::uint8_t* buffers_ = nullptr;
  std::vector<rte_mbuf> memory_ = std::vector<rte_mbuf>(frames_a_batch);
  std::vector<rte_mbuf*> mbufs_;
  std::vector<std::uint64_t> addresses_;
  std::vector<std::uint16_t> lengths_ = std::vector<std::uint16_t>(frames_a_batch);
  std::vector<engine::Row> rows_ = std::vector<engine::Row>(frames_a_batch);
  engine::LaneCounters counters_;
  engine::Emitter emitter_{{}, 0, counters_, nullptr};
  engine::Batch batch_;
  std::uint32_t next_ = 0;
};

void a_lanes_core(benchmark::State& state) {
  Bed bed(static_cast<std::uint32_t>(state.range(0)));
  while (!bed.all_have_begun()) {
    bed.receive();
    bed.collect();
    bed.null_result();
    bed.forward();
  }
  using Clock = std::chrono::steady_clock;
  using Ns = std::chrono::duration<double, std::nano>;
  std::vector<double> collecting, forwarding;
  for (auto _ : state) {
    bed.receive();
    const auto begin = Clock::now();
    bed.collect();
    const Ns collected = Clock::now() - begin;
    bed.null_result();
    const auto done = Clock::now();
    const std::uint32_t passed = bed.forward();
    const Ns forwarded = Clock::now() - done;
    if (passed != frames_a_batch) state.SkipWithError("frames were dropped");
    collecting.push_back(collected.count() / frames_a_batch);
    forwarding.push_back(forwarded.count() / frames_a_batch);
    state.SetIterationTime((collected + forwarded).count() / 1e9);
  }
  // Medians: the machine may do other things meanwhile.
  for (const auto& [name, times] : {std::pair{"collect_ns", &collecting}, std::pair{"forward_ns", &forwarding}}) {
    std::ranges::nth_element(*times, times->begin() + static_cast<std::ptrdiff_t>(times->size() / 2));
    state.counters[name] = (*times)[times->size() / 2];
  }
  state.SetLabel(bed.on_device() ? "for a device" : "for the core");
}
BENCHMARK(a_lanes_core)->Arg(72)->Arg(7143)->Arg(100000)->UseManualTime();

}  // namespace
}  // namespace sluice::function
