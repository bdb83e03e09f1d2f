// What a frame of UDP that belongs to no stream costs more where [srtp.rtsp] names servers: by prefixes.
#include <benchmark/benchmark.h>

#include <string>

#include "function/srtp/media_stream.h"
#include "function/srtp/server_media.h"

namespace sluice::function {
namespace {

void no_streams_frame(benchmark::State& state) {
  RtspOptions options;
  for (int i = 0; i < state.range(0); ++i) {
    options.servers.push_back(*packet::IpPrefix::parse("10.2." + std::to_string(i) + ".0/24"));
    options.servers.push_back(*packet::IpPrefix::parse("2001:db8:2:" + std::to_string(i) + "::/64"));
  }
  const ServerMedia media(options);
  const bool six = state.range(1) == 6;
  MediaKey keys[64];
  for (std::uint16_t i = 0; i < 64; ++i) {
    keys[i] =
        media_key(*packet::IpAddress::parse(six ? "2001:db8:9::2" : "10.9.0.2"), static_cast<std::uint16_t>(5000 + i),
                  *packet::IpAddress::parse(six ? "2001:db8:1::2" : "10.1.0.2"), 6000);
  }
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(media.may_be(keys[next++ % 64]));
}
BENCHMARK(no_streams_frame)->ArgsProduct({{0, 1, 4, 16, 32}, {4, 6}});

}  // namespace
}  // namespace sluice::function
