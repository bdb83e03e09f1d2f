// What the element costs a frame on a core when it leaves: the rule's verdict and counters. Rules are hit evenly, which
// is the dearest; the frames are in cache.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "engine/burst.h"
#include "engine/emitter.h"
#include "function/acl/acl.h"
#include "lookup/bench_eal.h"
#include "packet/builder.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t frames = 4096;
constexpr std::uint32_t batches = 8;

// Rule i permits what goes to 10.0.0.0 + i.
std::unique_ptr<Acl> acl_of(std::uint32_t rules) {
  lookup::start_bench_eal();
  Acl::AclOptions options;
  for (std::uint32_t i = 0; i < rules; ++i) {
    lookup::acl::AclRule rule;
    rule.destination = packet::IpPrefix::host(packet::IpAddress::v4(0x0a00'0000 + i));
    options.rules.push_back(rule);
  }
  auto acl = std::make_unique<Acl>(std::move(options));
  if (const auto ok = acl->prepare({}); !ok) {
    std::fprintf(stderr, "acl_bench: %s\n", ok.error().message.c_str());
    std::exit(1);
  }
  return acl;
}

// Batches of frames to the addresses of such rules, classified.
class Batches {
 public:
  Batches(Acl& acl, std::uint32_t rules) {
    std::mt19937 random(1);
    const std::size_t bytes = std::size_t{acl.shape().bytes_per_frame} * frames;
    for (std::uint32_t b = 0; b < batches; ++b) {
      Classified& one = all_[b];
      one.area.reset(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
      for (std::uint32_t i = 0; i < frames; ++i) {
        const auto to = packet::IpAddress::v4(0x0a00'0000 + random() % rules);
        one.bytes.push_back(packet::PacketBuilder().ipv4("192.0.2.1", to.str().c_str()).udp(1, 2).build());
        one.frame.push_back(reinterpret_cast<std::uint64_t>(one.bytes.back().data()));
        one.length.push_back(static_cast<std::uint16_t>(one.bytes.back().size()));
      }
      one.batch.frame = one.frame.data();
      one.batch.length = one.length.data();
      one.batch.capacity = one.batch.count = frames;
      one.batch.slot = b;
      one.batch.area[0] = one.area.get();
      one.row.resize(frames);
      one.batch.row = one.row.data();
      acl.classify(one.batch, {0, frames});
      acl.compute(one.batch, {0, frames});
    }
  }

  std::uint64_t apply(Acl& acl, std::size_t b) {
    Classified& one = all_[b % batches];
    // A burst at a time, and never the last one: then the batch keeps its list, and can be judged again.
    for (std::uint32_t i = 0; i + engine::burst_size < frames; i += engine::burst_size) {
      acl.apply(one.batch, {i, engine::burst_size}, emitter_);
    }
    return one.row[0].reason;
  }

 private:
  struct Classified {
    std::vector<packet::Bytes> bytes;
    std::vector<std::uint64_t> frame;
    std::vector<std::uint16_t> length;
    std::vector<engine::Row> row;
    engine::Batch batch{};
    std::unique_ptr<std::byte, decltype(&std::free)> area{nullptr, &std::free};
  };
  std::array<Classified, batches> all_;
  engine::LaneCounters counters_;
  engine::Emitter emitter_{{}, 0, counters_, nullptr};
};

void acl_apply(benchmark::State& state) {
  const auto rules = static_cast<std::uint32_t>(state.range(0));
  const auto acl = acl_of(rules);
  Batches all(*acl, rules);
  std::size_t b = 0;
  for (auto _ : state) benchmark::DoNotOptimize(all.apply(*acl, b++));
  state.SetItemsProcessed(state.iterations() * (frames - engine::burst_size));
}

BENCHMARK(acl_apply)->Arg(1)->Arg(1000)->Arg(10'000)->Arg(100'000);

}  // namespace
}  // namespace sluice::function
