// The mirror on the GPU (or on the host SIMT shim): the same answers as the trie after every sync, in order and out of
// it.
#include "lookup/gpu_fib.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../tests/support/gpu.h"
#include "lookup/fib.h"
#include "lookup/reference_test.h"
#include "lookup/trie.h"

namespace sluice::lookup {
namespace {

constexpr std::uint32_t most_keys = 4096;

class GpuFibTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    auto gpu = device::Gpu::open(0, 2);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
    fib_ = std::move(
        Fib::create({.name = "gpu", .max_routes4 = 4000, .max_routes6 = 4000, .groups4 = 500, .groups6 = 8000})
            .value());
    v4_ = std::move(Trie::create(4, 1000).value());
    v6_ = std::move(Trie::create(6, 8000).value());
    ASSERT_TRUE(fib_->attach(*v4_) && fib_->attach(*v6_));
    keys4_ = static_cast<std::uint32_t*>(gpu_->allocate_host(most_keys * 4).value());
    keys6_ = static_cast<std::uint8_t*>(gpu_->allocate_host(most_keys * 16).value());
    out4_ = static_cast<NextHopId*>(gpu_->allocate_host(most_keys * 4).value());
    out6_ = static_cast<NextHopId*>(gpu_->allocate_host(most_keys * 4).value());
  }

  void make_gpu_fib() {
    auto made = GpuFib::create(*gpu_, *v4_, *v6_);
    ASSERT_TRUE(made) << made.error().message;
    gpu_fib_ = std::move(*made);
  }

  void wait(device::GpuStream& stream) {
    ASSERT_TRUE(stream.mark());
    device::MarkState state = device::MarkState::pending;
    while (stream.pending_marks() > 0) {
      state = stream.poll();
      ASSERT_NE(state, device::MarkState::failed) << gpu_->why();
    }
  }

  void sync_all(std::size_t max_bytes = GpuFib::default_sync_bytes) {
    do {
      const auto ok = gpu_fib_->sync(gpu_->stream(0), max_bytes);
      ASSERT_TRUE(ok) << ok.error().message;
      wait(gpu_->stream(0));
    } while (!gpu_fib_->up_to_date());
  }

  // Looks all of them up on the GPU, both families in one launch; answers in the order of the addresses.
  std::vector<NextHopId> on_gpu(const std::vector<packet::IpAddress>& addresses) {
    std::uint32_t n4 = 0;
    std::uint32_t n6 = 0;
    for (const auto& address : addresses) {
      if (address.family == 4) {
        keys4_[n4++] = address.v4_host_order();
      } else {
        std::memcpy(keys6_ + 16 * n6++, address.bytes.data(), 16);
      }
    }
    EXPECT_LE(std::max(n4, n6), most_keys);
    const auto ok = gpu_fib_->lookup(gpu_->stream(1), keys4_, out4_, n4, keys6_, out6_, n6);
    EXPECT_TRUE(ok) << ok.error().message;
    wait(gpu_->stream(1));
    std::vector<NextHopId> out;
    n4 = n6 = 0;
    for (const auto& address : addresses) {
      out.push_back(address.family == 4 ? out4_[n4++] : out6_[n6++]);
    }
    return out;
  }

  NextHopId in_trie(const packet::IpAddress& address) const {
    return lookup_one(address.family == 4 ? *v4_ : *v6_, address);
  }

  void expect_equal(const std::vector<packet::IpAddress>& addresses, const char* when) {
    const auto answers = on_gpu(addresses);
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      ASSERT_EQ(answers[i], in_trie(addresses[i])) << addresses[i].str() << " " << when;
    }
  }

  std::unique_ptr<device::Gpu> gpu_;
  std::unique_ptr<Fib> fib_;
  std::unique_ptr<Trie> v4_;
  std::unique_ptr<Trie> v6_;
  std::unique_ptr<GpuFib> gpu_fib_;
  std::uint32_t* keys4_ = nullptr;
  std::uint8_t* keys6_ = nullptr;
  NextHopId* out4_ = nullptr;
  NextHopId* out6_ = nullptr;
};

TEST_F(GpuFibTest, FollowsRandomChanges) {
  std::mt19937_64 random(11);
  std::vector<packet::IpPrefix> pool;
  std::vector<packet::IpAddress> edges;
  for (int i = 0; i < 160; ++i) {
    pool.push_back(random_overlapping_prefix(i % 2 == 0 ? 4 : 6, random));
    append_edges(pool.back(), random, edges);
  }
  for (int i = 0; i < 80; ++i) {
    ASSERT_TRUE(fib_->add(pool[static_cast<std::size_t>(i)], static_cast<NextHopId>(1 + i)));
  }
  make_gpu_fib();
  expect_equal(edges, "after the upload");
  for (int round = 0; round < 40; ++round) {
    for (int change = 0; change < 10; ++change) {
      const packet::IpPrefix& prefix = pool[random() % pool.size()];
      if (fib_->find(prefix) != no_route && random() % 2 == 0) {
        ASSERT_TRUE(fib_->remove(prefix));
      } else {
        ASSERT_TRUE(fib_->add(prefix, static_cast<NextHopId>(1 + random() % 5)));
      }
    }
    sync_all();
    expect_equal(edges, "after a round of changes");
  }
}

// Each set of changes is sent in the smallest steps; between any two, every address has its old route or its new one.
TEST_F(GpuFibTest, SmallStepsNeverShowAThirdRoute) {
  std::mt19937_64 random(5);
  std::vector<packet::IpPrefix> pool;
  std::vector<packet::IpAddress> edges;
  for (int i = 0; i < 60; ++i) {
    // Long ones: changes of few slots, deep chains of blocks.
    packet::IpPrefix prefix = random_overlapping_prefix(i % 2 == 0 ? 4 : 6, random);
    prefix = packet::IpPrefix::of(prefix.address, std::max<unsigned>(prefix.length, 20));
    pool.push_back(prefix);
    append_edges(prefix, random, edges);
  }
  make_gpu_fib();
  std::size_t steps = 0;
  std::size_t mixed = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<NextHopId> before;
    for (const auto& address : edges) {
      before.push_back(in_trie(address));
    }
    for (int change = 0; change < 8; ++change) {
      const packet::IpPrefix& prefix = pool[random() % pool.size()];
      if (fib_->find(prefix) != no_route) {
        ASSERT_TRUE(fib_->remove(prefix));
      } else {
        ASSERT_TRUE(fib_->add(prefix, static_cast<NextHopId>(1 + round * 8 + change)));
      }
    }
    std::vector<NextHopId> after;
    for (const auto& address : edges) {
      after.push_back(in_trie(address));
    }
    while (!gpu_fib_->up_to_date()) {
      ASSERT_TRUE(gpu_fib_->sync(gpu_->stream(0), 2 * 128));
      wait(gpu_->stream(0));
      ++steps;
      const auto now = on_gpu(edges);
      for (std::size_t i = 0; i < edges.size(); ++i) {
        ASSERT_TRUE(now[i] == before[i] || now[i] == after[i])
            << edges[i].str() << ": " << now[i] << " is neither " << before[i] << " nor " << after[i];
      }
      mixed += now != before && now != after ? 1 : 0;
    }
    ASSERT_EQ(on_gpu(edges), after);
  }
  EXPECT_GT(steps, 200U);
  EXPECT_GT(mixed, 100U) << "the steps were too large to show anything";
}

// Lookups on one stream while changes are applied on another: on a GPU at the same time.
TEST_F(GpuFibTest, LookupsBesideASyncSeeTheOldRouteOrTheNewOne) {
  const std::vector<packet::IpPrefix> changing{
      packet::IpPrefix::parse("10.1.1.128/25").value(), packet::IpPrefix::parse("10.1.0.0/16").value(),
      packet::IpPrefix::parse("2001:db8:0:1::/64").value(), packet::IpPrefix::parse("2001:db8::1/128").value()};
  std::mt19937_64 random(8);
  ASSERT_TRUE(fib_->add(packet::IpPrefix::parse("10.0.0.0/8").value(), 1));
  ASSERT_TRUE(fib_->add(packet::IpPrefix::parse("2001:db8::/32").value(), 2));
  make_gpu_fib();
  std::vector<packet::IpAddress> probes;
  while (probes.size() < 2000) {
    append_edges(changing[random() % changing.size()], random, probes);
  }
  std::uint32_t n4 = 0;
  std::uint32_t n6 = 0;
  std::vector<packet::IpAddress> in_order4;
  std::vector<packet::IpAddress> in_order6;
  for (const auto& address : probes) {
    if (address.family == 4) {
      keys4_[n4++] = address.v4_host_order();
      in_order4.push_back(address);
    } else {
      std::memcpy(keys6_ + 16 * n6++, address.bytes.data(), 16);
      in_order6.push_back(address);
    }
  }
  const auto answers = [&](const std::vector<packet::IpAddress>& addresses) {
    std::vector<NextHopId> out;
    std::transform(addresses.begin(), addresses.end(), std::back_inserter(out),
                   [&](const auto& address) { return in_trie(address); });
    return out;
  };
  for (NextHopId round = 0; round < 100; ++round) {
    const auto before4 = answers(in_order4);
    const auto before6 = answers(in_order6);
    for (const auto& prefix : changing) {
      if (round % 2 == 0) {
        ASSERT_TRUE(fib_->add(prefix, 10 + round));
      } else {
        ASSERT_TRUE(fib_->remove(prefix));
      }
    }
    const auto after4 = answers(in_order4);
    const auto after6 = answers(in_order6);
    // The sync in the middle of lookups that are already enqueued: some run before it, some beside it, some after it.
    for (int launch = 0; launch < 4; ++launch) {
      ASSERT_TRUE(gpu_fib_->lookup(gpu_->stream(1), keys4_, out4_, n4, keys6_, out6_, n6));
    }
    ASSERT_TRUE(gpu_fib_->sync(gpu_->stream(0)));
    wait(gpu_->stream(1));
    for (std::uint32_t i = 0; i < n4; ++i) {
      ASSERT_TRUE(out4_[i] == before4[i] || out4_[i] == after4[i]) << in_order4[i].str() << ": " << out4_[i];
    }
    for (std::uint32_t i = 0; i < n6; ++i) {
      ASSERT_TRUE(out6_[i] == before6[i] || out6_[i] == after6[i]) << in_order6[i].str() << ": " << out6_[i];
    }
    sync_all();
  }
  EXPECT_EQ(on_gpu(probes), answers(probes));
}

TEST_F(GpuFibTest, BlocksAreUsedAgain) {
  make_gpu_fib();
  const auto host = packet::IpPrefix::parse("2001:db8::1/128").value();
  const std::vector<packet::IpAddress> probe{host.address, neighbour(host.address, true)};
  // 13 blocks each time: far more in all than there are.
  for (NextHopId i = 1; i <= 2000; ++i) {
    ASSERT_TRUE(fib_->add(host, i)) << i;
    ASSERT_TRUE(gpu_fib_->sync(gpu_->stream(0)));
    if (i % 100 == 0) {
      sync_all();
      ASSERT_EQ(on_gpu(probe), (std::vector<NextHopId>{i, no_route}));
    }
    ASSERT_TRUE(fib_->remove(host));
    ASSERT_TRUE(gpu_fib_->sync(gpu_->stream(0)));
  }
  sync_all();
  EXPECT_EQ(on_gpu(probe), (std::vector<NextHopId>{no_route, no_route}));
}

TEST_F(GpuFibTest, ALostGpuHoldsNoBlocks) {
  make_gpu_fib();
  gpu_->lose("for a test");
  EXPECT_FALSE(gpu_fib_->sync(gpu_->stream(0)));
  const auto host = packet::IpPrefix::parse("2001:db8::1/128").value();
  for (NextHopId i = 1; i <= 2000; ++i) {
    const auto ok = fib_->add(host, i);
    ASSERT_TRUE(ok) << i << ": " << ok.error().message;
    ASSERT_TRUE(fib_->remove(host));
  }
  EXPECT_EQ(v6_->blocks_used(), 0U);
}

TEST_F(GpuFibTest, NothingToDoLaunchesNothing) {
  make_gpu_fib();
  EXPECT_TRUE(gpu_fib_->up_to_date());
  EXPECT_TRUE(gpu_fib_->sync(gpu_->stream(0)));
  EXPECT_TRUE(gpu_fib_->lookup(gpu_->stream(0), nullptr, nullptr, 0, nullptr, nullptr, 0));
}

}  // namespace
}  // namespace sluice::lookup
