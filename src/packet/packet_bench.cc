// What the packet path pays for each 64-byte frame: parse, headers, hash, TTL; frames in the first two levels of cache.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "packet/builder.h"
#include "packet/flow_hash.h"
#include "packet/frame_mix.h"
#include "packet/header_facts.h"
#include "packet/metadata.h"
#include "packet/parse.h"

namespace sluice::packet {
namespace {

enum Traffic { ipv4, ipv6, mixed };

std::vector<Bytes> frames(int traffic) {
  constexpr std::size_t count = 256;
  std::mt19937 random(1);
  std::vector<Bytes> frames;
  for (std::size_t i = 0; i < count; ++i) {
    PacketBuilder builder;
    if (traffic == ipv4 || (traffic == mixed && random() % 2 == 0)) {
      builder.ipv4(IpAddress::v4(0x0a000000 + random() % 0xffffff), IpAddress::v4(0x0b000000 + random() % 0xffffff));
    } else {
      IpAddress host = *IpAddress::parse("2001:db8::1");
      host.bytes[15] = static_cast<std::uint8_t>(random());
      builder.ipv6(host, *IpAddress::parse("2001:db8:1::1"));
    }
    frames.push_back(builder.udp(static_cast<std::uint16_t>(random()), 80).payload(10).build());
  }
  return frames;
}

void finish(benchmark::State& state, std::size_t frames) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(frames));
  state.counters["ns/frame"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(frames) / 1e9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void BM_parse(benchmark::State& state) {
  const auto traffic = frames(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    for (const Bytes& frame : traffic) {
      FrameView view;
      benchmark::DoNotOptimize(parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), view));
      benchmark::DoNotOptimize(view);
    }
  }
  finish(state, traffic.size());
}
BENCHMARK(BM_parse)->ArgName("traffic")->Arg(ipv4)->Arg(ipv6)->Arg(mixed);

void BM_read_metadata(benchmark::State& state) {
  const auto traffic = frames(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    for (const Bytes& frame : traffic) {
      Metadata meta;
      read_metadata(frame.data(), static_cast<std::uint32_t>(frame.size()), Depth::transport, meta);
      benchmark::DoNotOptimize(meta);
    }
  }
  finish(state, traffic.size());
}
BENCHMARK(BM_read_metadata)->ArgName("traffic")->Arg(ipv4)->Arg(ipv6)->Arg(mixed);

// As of a frame with tags, or in a tunnel.
void BM_read_frame_metadata(benchmark::State& state) {
  const auto traffic = frames(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    for (const Bytes& frame : traffic) {
      Metadata meta;
      read_frame_metadata(frame.data(), 0, static_cast<std::uint32_t>(frame.size()), Depth::transport, meta);
      benchmark::DoNotOptimize(meta);
    }
  }
  finish(state, traffic.size());
}
BENCHMARK(BM_read_frame_metadata)->ArgName("traffic")->Arg(ipv4)->Arg(ipv6)->Arg(mixed);

void use(const Bytes& frame, const Metadata& meta) {
  std::uint32_t word = 0;
  std::memcpy(&word, meta.source(frame.data()), sizeof word);
  benchmark::DoNotOptimize(word + meta.source_port + meta.payload_end - meta.payload);
}

// Two users of a batch's frames, one after the other: each reads the headers anew, or the first keeps what was found
// for the second.
template <bool keeps>
void BM_two_users(benchmark::State& state) {
  const auto traffic = frames(static_cast<int>(state.range(0)));
  std::vector<Metadata> kept(traffic.size());
  const auto read_anew = [&] {
    for (const Bytes& frame : traffic) {
      Metadata meta;
      if (read_plain(frame.data(), static_cast<std::uint32_t>(frame.size()), meta)) use(frame, meta);
    }
    benchmark::ClobberMemory();
  };
  for (auto _ : state) {
    if (!keeps) {
      read_anew();
      read_anew();
      continue;
    }
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      kept[i] = {};
      if (read_plain(traffic[i].data(), static_cast<std::uint32_t>(traffic[i].size()), kept[i])) {
        use(traffic[i], kept[i]);
      }
    }
    benchmark::ClobberMemory();
    for (std::size_t i = 0; i < traffic.size(); ++i) use(traffic[i], kept[i]);
  }
  finish(state, traffic.size());
}
BENCHMARK_TEMPLATE(BM_two_users, false)->ArgName("traffic")->Arg(ipv4)->Arg(ipv6)->Arg(mixed);
BENCHMARK_TEMPLATE(BM_two_users, true)->ArgName("traffic")->Arg(ipv4)->Arg(ipv6)->Arg(mixed);

void BM_read_headers(benchmark::State& state) {
  const auto traffic = frames(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    for (const Bytes& frame : traffic) {
      HeaderFacts facts;
      read_headers({reinterpret_cast<const char*>(frame.data()), frame.size()}, facts);
      benchmark::DoNotOptimize(facts);
    }
  }
  finish(state, traffic.size());
}
BENCHMARK(BM_read_headers)->ArgName("traffic")->Arg(ipv4)->Arg(ipv6)->Arg(mixed);

void BM_parse_and_hash(benchmark::State& state) {
  const auto traffic = frames(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    for (const Bytes& frame : traffic) {
      FrameView view;
      const auto length = static_cast<std::uint32_t>(frame.size());
      if (parse_frame(frame.data(), length, view) == no_reason) {
        benchmark::DoNotOptimize(flow_hash(frame.data(), length, view));
      }
    }
  }
  finish(state, traffic.size());
}
BENCHMARK(BM_parse_and_hash)->ArgName("traffic")->Arg(ipv4)->Arg(ipv6)->Arg(mixed);

void BM_decrement_ttl(benchmark::State& state) {
  auto traffic = frames(ipv4);
  for (auto _ : state) {
    for (Bytes& frame : traffic) {
      decrement_ttl(header_at<Ipv4Header>(frame.data(), sizeof(EthernetHeader)));
    }
    benchmark::ClobberMemory();
  }
  finish(state, traffic.size());
}
BENCHMARK(BM_decrement_ttl);

void BM_internet_checksum(benchmark::State& state) {
  const Bytes bytes(static_cast<std::size_t>(state.range(0)), 0x5a);
  for (auto _ : state) {
    benchmark::DoNotOptimize(internet_checksum(bytes.data(), bytes.size()));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_internet_checksum)->Arg(20)->Arg(1480);

void BM_frame_mix(benchmark::State& state) {
  FrameMix mix = FrameMix::make("heavy-tail").value();
  for (auto _ : state) {
    benchmark::DoNotOptimize(mix.next());
  }
}
BENCHMARK(BM_frame_mix);

}  // namespace
}  // namespace sluice::packet
