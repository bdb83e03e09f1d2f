// What the element "ipsec" costs a packet that is no IPsec and that no policy protects, on a lane's core, from admit()
// to leave(), by the number of policies. Frames are in the cache, as behind a driver that has just received them.
#include <benchmark/benchmark.h>
#include <rte_mbuf.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/emitter.h"
#include "function/ipsec/ipsec.h"
#include "lookup/bench_eal.h"
#include "packet/builder.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t frames = 64, batch_frames = 256, buffer_bytes = 256, headroom = 128, flows = 64;

Expected<std::unique_ptr<Ipsec>> make_element(unsigned policies, const engine::PortTable& ports) {
  IpsecOptions options;
  for (unsigned n = 0; n < policies; ++n) {
    const std::string far = "172." + std::to_string(16 + n / 256) + "." + std::to_string(n % 256) + ".0/24";
    for (const bool out : {true, false}) {
      auto policy = read_policy_text(
          "direction = \"" + std::string(out ? "out" : "in") + "\"\nsource = \"" + (out ? "192.168.0.0/16" : far) +
              "\"\ndestination = \"" + (out ? far : "192.168.0.0/16") + "\"\naction = \"protect\"\ntunnel_source = \"" +
              (out ? "192.0.2.1" : "192.0.2.2") + "\"\ntunnel_destination = \"" + (out ? "192.0.2.2" : "192.0.2.1") +
              "\"\n",
          "policy");
      if (!policy) return tl::unexpected(policy.error());
      options.policies.push_back(std::move(*policy));
    }
  }
  return std::make_unique<Ipsec>(std::move(options), ports);
}

void a_clear_packet(benchmark::State& state) {
  lookup::start_bench_eal();  // the element has a flag of frames
  const engine::PortTable ports({{.name = "in", .mac = {}, .peer = 1}, {.name = "out", .mac = {}, .peer = 0}});
  auto made = make_element(static_cast<unsigned>(state.range(0)), ports);
  if (!made) return state.SkipWithError(made.error().message.c_str());
  Ipsec& element = **made;
  if (auto ok = element.prepare({.lanes = 1}); !ok) return state.SkipWithError(ok.error().message.c_str());

  engine::Batch batch;
  const std::size_t area = std::size_t{batch_frames} * element.shape().bytes_per_frame;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, (area + 63) / 64 * 64), &std::free);
  std::vector<rte_mbuf> mbufs(frames);
  std::vector<std::uint8_t> buffers(std::size_t{frames} * buffer_bytes);
  std::vector<rte_mbuf*> pointers;
  std::vector<std::uint64_t> addresses;
  std::vector<std::uint16_t> lengths;
  for (std::uint32_t i = 0; i < frames; ++i) {
    const packet::Bytes frame = packet::PacketBuilder()
                                    .ipv4("10.0.0." + std::to_string(i % flows), "198.51.100.1")
                                    .udp(static_cast<std::uint16_t>(5000 + i), 6000)
                                    .build();
    rte_mbuf& one = mbufs[i];
    one.buf_addr = &buffers[std::size_t{i} * buffer_bytes];
    one.buf_len = buffer_bytes;
    one.data_off = headroom;
    one.data_len = static_cast<std::uint16_t>(frame.size());
    one.pkt_len = one.data_len;
    std::copy(frame.begin(), frame.end(), rte_pktmbuf_mtod(&one, std::uint8_t*));
    pointers.push_back(&one);
    addresses.push_back(reinterpret_cast<std::uint64_t>(rte_pktmbuf_mtod(&one, const void*)));
    lengths.push_back(one.data_len);
  }
  std::vector<engine::Row> rows(frames);
  batch.area[0] = static_cast<std::byte*>(memory.get());
  batch.frame = addresses.data();
  batch.length = lengths.data();
  batch.mbuf = pointers.data();
  batch.row = rows.data();
  batch.capacity = batch_frames;
  batch.count = frames;
  const std::vector<std::uint16_t> came_by(frames, 0);
  engine::LaneCounters counters;
  engine::Emitter out({nullptr, nullptr}, 0, counters, nullptr);

  const engine::Span span{0, frames};
  std::uint64_t left = 0;
  for (auto _ : state) {
    std::fill(rows.begin(), rows.end(), engine::Row{});
    element.admit(batch, span);
    element.classify(batch, span);
    element.compute(batch, span);
    element.apply(batch, span, out);
    for (std::uint32_t i = 0; i < frames; ++i) batch.send(i, 1);
    element.choose(batch, span, came_by.data(), out);
    left += element.leave(0, 1, pointers.data(), frames, out);
  }
  if (left != static_cast<std::uint64_t>(state.iterations()) * frames) state.SkipWithError("packets did not leave");
  state.counters["a_packet"] =
      benchmark::Counter(static_cast<double>(left), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(a_clear_packet)->Arg(0)->Arg(1)->Arg(4)->Arg(16)->Arg(1000);

}  // namespace
}  // namespace sluice::function
