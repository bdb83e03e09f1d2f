// Whole Internet tables and real BGP updates: what goes in must come out of the CPU's table, the trie and the GPU
// alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "../tests/support/gpu.h"
#include "../tests/support/public_data.h"
#include "lookup/fib.h"
#include "lookup/gpu_fib.h"
#include "lookup/reference_test.h"
#include "lookup/route_file.h"
#include "lookup/trie.h"

namespace sluice::lookup {
namespace {

#ifdef SLUICE_SANITIZED
constexpr std::size_t thin = 20;  // every 20th route: the same paths, in a time that a sanitizer build has
#else
constexpr std::size_t thin = 1;
#endif

constexpr std::uint32_t gpu_probes = 4096;

class FullTable : public testing::Test {
 protected:
  void create(std::uint32_t max4, std::uint32_t max6) {
    auto fib = Fib::create({.name = "full", .max_routes4 = max4, .max_routes6 = max6});
    ASSERT_TRUE(fib) << fib.error().message;
    fib_ = std::move(*fib);
    trie4_ = std::move(Trie::create(4, Fib::default_groups(4, max4) + 1024).value());
    trie6_ = std::move(Trie::create(6, Fib::default_groups(6, max6) + 1024).value());
    ASSERT_TRUE(fib_->attach(*trie4_) && fib_->attach(*trie6_));
  }

  void add(const packet::IpPrefix& prefix, NextHopId next_hop) {
    const auto ok = fib_->add(prefix, next_hop);
    ASSERT_TRUE(ok) << ok.error().message;
    reference_.add(prefix, next_hop);
  }

  void load(const RouteList& list) {
    for (std::size_t i = 0; i < list.routes.size(); i += thin) {
      add(list.routes[i].prefix, list.routes[i].next_hop);
    }
    ASSERT_EQ(fib_->size4() + fib_->size6(), reference_.size());
  }

  void probe(const packet::IpPrefix& prefix) {
    append_edges(prefix, random_, prefix.address.family == 4 ? probes4_ : probes6_);
  }

  void check_cpu() const {
    for (const auto* probes : {&probes4_, &probes6_}) {
      const auto from_fib = lookup_all(*fib_, *probes);
      for (std::size_t i = 0; i < probes->size(); ++i) {
        const NextHopId expected = reference_.lookup((*probes)[i]);
        ASSERT_EQ(from_fib[i], expected) << "rte_fib, " << (*probes)[i].str();
        ASSERT_EQ(lookup_one(probes == &probes4_ ? *trie4_ : *trie6_, (*probes)[i]), expected)
            << "trie, " << (*probes)[i].str();
      }
    }
  }

  // A sample of the probes on the GPU (the shim is slow).
  void check_gpu(device::Gpu& gpu, GpuFib& gpu_fib) {
    auto* keys4 = static_cast<std::uint32_t*>(gpu.allocate_host(gpu_probes * 4).value());
    auto* keys6 = static_cast<std::uint8_t*>(gpu.allocate_host(gpu_probes * 16).value());
    auto* out4 = static_cast<NextHopId*>(gpu.allocate_host(gpu_probes * 4).value());
    auto* out6 = static_cast<NextHopId*>(gpu.allocate_host(gpu_probes * 4).value());
    std::shuffle(probes4_.begin(), probes4_.end(), random_);
    std::shuffle(probes6_.begin(), probes6_.end(), random_);
    const auto n4 = static_cast<std::uint32_t>(std::min<std::size_t>(probes4_.size(), gpu_probes));
    const auto n6 = static_cast<std::uint32_t>(std::min<std::size_t>(probes6_.size(), gpu_probes));
    for (std::uint32_t i = 0; i < n4; ++i) {
      keys4[i] = probes4_[i].v4_host_order();
    }
    for (std::uint32_t i = 0; i < n6; ++i) {
      std::memcpy(keys6 + 16 * i, probes6_[i].bytes.data(), 16);
    }
    ASSERT_TRUE(gpu_fib.lookup(gpu.stream(0), keys4, out4, n4, keys6, out6, n6));
    ASSERT_TRUE(gpu.stream(0).mark());
    while (gpu.stream(0).pending_marks() > 0) {
      ASSERT_NE(gpu.stream(0).poll(), device::MarkState::failed);
    }
    for (std::uint32_t i = 0; i < n4; ++i) {
      ASSERT_EQ(out4[i], reference_.lookup(probes4_[i])) << probes4_[i].str();
    }
    for (std::uint32_t i = 0; i < n6; ++i) {
      ASSERT_EQ(out6[i], reference_.lookup(probes6_[i])) << probes6_[i].str();
    }
  }

  void random_probes(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      probes4_.push_back(random_address(4, random_));
    }
  }

  std::mt19937_64 random_{2015};
  std::unique_ptr<Fib> fib_;
  std::unique_ptr<Trie> trie4_;
  std::unique_ptr<Trie> trie6_;
  Reference reference_;
  std::vector<packet::IpAddress> probes4_;
  std::vector<packet::IpAddress> probes6_;
};

#define READ_OR_SKIP(list, read, name)                                                    \
  if (const std::string why = test::why_no_data(name); !why.empty()) GTEST_SKIP() << why; \
  const auto list = read(test::data_path(name));                                          \
  ASSERT_TRUE(list) << list.error().message

TEST_F(FullTable, RouteViews2015BothFamilies) {
  READ_OR_SKIP(routes4, read_routes, "routing/ipv4-routeviews-20151101-asn.txt.xz");
  READ_OR_SKIP(routes6, read_routes, "routing/ipv6-routeviews-20151101-asn.txt.xz");
  EXPECT_EQ(routes4->routes.size(), 606'138U);
  EXPECT_EQ(routes6->routes.size(), 27'693U);
  create(700'000, 40'000);
  load(*routes4);
  load(*routes6);
  for (std::size_t i = 0; i < routes4->routes.size(); i += 20) {
    probe(routes4->routes[i].prefix);
  }
  for (std::size_t i = 0; i < routes6->routes.size(); i += 4) {
    probe(routes6->routes[i].prefix);
  }
  random_probes(50'000);
  check_cpu();
  RecordProperty("blocks4", static_cast<int>(trie4_->blocks_used()));
  RecordProperty("blocks6", static_cast<int>(trie6_->blocks_used()));
  if (const std::string why = test::why_no_gpu(); !why.empty()) {
    GTEST_SKIP() << "the CPU's part passed; " << why;
  }
  const auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto gpu_fib = std::move(GpuFib::create(**gpu, *trie4_, *trie6_).value());
  check_gpu(**gpu, *gpu_fib);
}

TEST_F(FullTable, RealNextHopsOf2002) {
  READ_OR_SKIP(routes, read_routes, "routing/ipv4-ris-20020722-real-nexthop.txt.xz");
  EXPECT_EQ(routes->routes.size(), 112'988U);
  create(120'000, 1'000);
  load(*routes);
  for (std::size_t i = 0; i < routes->routes.size(); i += 10) {
    probe(routes->routes[i].prefix);
  }
  random_probes(20'000);
  check_cpu();
}

// Both families' worth of an hour of real updates, with the mirror following in small steps.
void replay(const RouteList& updates, std::size_t& announced, std::size_t& withdrawn,
            const std::function<void(const RouteLine&)>& apply) {
  for (const RouteLine& update : updates.routes) {
    ++(update.next_hop != no_route ? announced : withdrawn);
    apply(update);
  }
}

class Updates : public FullTable, public testing::WithParamInterface<const char*> {};

TEST_P(Updates, AreFollowedByEveryTable) {
  READ_OR_SKIP(updates, read_updates, std::string("routing/") + GetParam());
  create(100'000, 40'000);
  // A table for the updates to fall into.
  const RouteList base = make_routes(20'000, 4'000, 1);
  for (const RouteLine& line : base.routes) {
    add(line.prefix, line.next_hop);
  }
  if (const std::string why = test::why_no_gpu(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto gpu_fib = std::move(GpuFib::create(**gpu, *trie4_, *trie6_).value());
  std::size_t announced = 0;
  std::size_t withdrawn = 0;
  std::size_t done = 0;
  replay(*updates, announced, withdrawn, [&](const RouteLine& update) {
    if (update.next_hop != no_route) {
      add(update.prefix, update.next_hop);
    } else {
      ASSERT_EQ(fib_->remove(update.prefix).has_value(), reference_.remove(update.prefix)) << update.prefix.str();
    }
    if (done++ % 64 == 0) {
      ASSERT_TRUE(gpu_fib->sync((*gpu)->stream(0), 4096));
    }
    if (done % 16 == 0) {
      probe(update.prefix);
    }
  });
  EXPECT_GT(announced, 39'000U);
  EXPECT_GT(withdrawn, 1'900U);
  ASSERT_EQ(fib_->size4() + fib_->size6(), reference_.size());
  check_cpu();
  while (!gpu_fib->up_to_date()) {
    ASSERT_TRUE(gpu_fib->sync((*gpu)->stream(0)));
  }
  check_gpu(**gpu, *gpu_fib);
}

INSTANTIATE_TEST_SUITE_P(Replay, Updates,
                         testing::Values("updates.20070211.0141.bgpdump-m.txt.xz",
                                         "updates.20160811.1600.bgpdump-m.txt.xz"),
                         [](const auto& info) { return std::string(info.param).substr(8, 8); });

// Stands without the data folder: a made table in, all of it out again.
TEST_F(FullTable, MadeTableInAndOut) {
  create(200'000 / thin, 60'000 / thin);
  const RouteList list = make_routes(200'000 / thin, 60'000 / thin, 3);
  for (const RouteLine& line : list.routes) {
    add(line.prefix, line.next_hop);
  }
  RecordProperty("groups4", static_cast<int>(fib_->groups_used(4)));
  RecordProperty("groups6", static_cast<int>(fib_->groups_used(6)));
  const auto full = fib_->add(packet::IpPrefix::parse("10.0.0.0/7").value(), 1);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "the IPv4 route table is full: 10.0.0.0/7 does not fit beside " +
                                      std::to_string(200'000 / thin) + " routes; raise [route] max_ipv4");
  for (std::size_t i = 0; i < list.routes.size(); i += 20) {
    probe(list.routes[i].prefix);
  }
  check_cpu();
  for (const RouteLine& line : list.routes) {
    ASSERT_TRUE(fib_->remove(line.prefix)) << line.prefix.str();
    reference_.remove(line.prefix);
  }
  EXPECT_EQ(fib_->size4() + fib_->size6(), 0U);
  EXPECT_EQ(trie4_->blocks_used() + trie6_->blocks_used(), 0U);
  EXPECT_EQ(fib_->groups_used(4) + fib_->groups_used(6), 0U);
  check_cpu();
}

}  // namespace
}  // namespace sluice::lookup
