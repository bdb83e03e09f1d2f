// A mirror in host memory that is handed change sets one run at a time, in the worst order that change_set.h allows.
#include "lookup/change_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <numeric>

#include "lookup/fib.h"
#include "lookup/reference_test.h"
#include "lookup/trie.h"

namespace sluice::lookup {
namespace {

class Mirror {
 public:
  explicit Mirror(Trie& trie) : log_(trie, [] { return false; }), slots_(trie.slot_count(), 0xabab) {
    std::copy_n(trie.slots(), trie.slots_touched(), slots_.begin());
    run_.resize(4096);
    values_.resize(65536);
    set_.run = run_.data();
    set_.values = values_.data();
    set_.run_capacity = static_cast<std::uint32_t>(run_.size());
    set_.value_capacity = static_cast<std::uint32_t>(values_.size());
  }

  NextHopId lookup(const packet::IpAddress& address) const {
    const auto& byte = address.bytes;
    std::uint32_t entry =
        slots_[static_cast<std::size_t>(byte[0]) << 16 | static_cast<std::size_t>(byte[1]) << 8 | byte[2]];
    for (unsigned at = 3; (entry & Trie::child_flag) != 0; ++at) {
      entry = slots_.at((entry << 8) + byte[at]);
    }
    return entry;
  }

  // Applies one change set, calling `check` after every run.
  template <typename Check>
  void step(std::size_t max_bytes, std::mt19937_64& random, const Check& check) {
    ASSERT_TRUE(log_.pack(set_, max_bytes, true));
    ASSERT_LE(set_.runs * sizeof(Run) + set_.values_used * sizeof(std::uint32_t), max_bytes);
    std::vector<std::uint32_t> order(set_.runs);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.begin() + set_.born, random);
    std::shuffle(order.begin() + set_.born, order.end(), random);
    for (const std::uint32_t i : order) {
      const Run& run = run_[i];
      for (std::uint32_t k = 0; k < run.count; ++k) {
        slots_.at(run.slot + k) = run.fill != 0 ? run.value : values_.at(run.value + k);
      }
      check();
    }
    if (log_.holds_retired()) {
      ASSERT_TRUE(log_.release_retired());
    }
  }

  bool up_to_date() const { return log_.up_to_date(); }
  ChangeLog& log() { return log_; }

 private:
  ChangeLog log_;
  std::vector<std::uint32_t> slots_;
  std::vector<Run> run_;
  std::vector<std::uint32_t> values_;
  ChangeSet set_;
};

class ChangeLogTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    fib_ = std::move(
        Fib::create({.name = "log", .max_routes4 = 4000, .max_routes6 = 4000, .groups4 = 500, .groups6 = 8000})
            .value());
    trie_ = std::move(Trie::create(GetParam(), 8000).value());
    ASSERT_TRUE(fib_->attach(*trie_));
  }
  std::vector<NextHopId> answers(const std::vector<packet::IpAddress>& addresses) const {
    std::vector<NextHopId> out;
    std::transform(addresses.begin(), addresses.end(), std::back_inserter(out),
                   [&](const auto& address) { return lookup_one(*trie_, address); });
    return out;
  }

  std::unique_ptr<Fib> fib_;
  std::unique_ptr<Trie> trie_;
};

TEST_P(ChangeLogTest, EveryRunLeavesTheOldRouteOrTheNewOne) {
  std::mt19937_64 random(21);
  Mirror mirror(*trie_);
  std::vector<packet::IpPrefix> pool;
  std::vector<packet::IpAddress> probes;
  for (int i = 0; i < 60; ++i) {
    pool.push_back(random_overlapping_prefix(GetParam(), random));
    append_edges(pool.back(), random, probes);
  }
  std::size_t runs = 0;
  for (int round = 0; round < 60; ++round) {
    const std::vector<NextHopId> before = answers(probes);
    for (int change = 0; change < 6; ++change) {
      // Default-like prefixes would only repeat: millions of slots, one run after the other.
      const packet::IpPrefix& prefix = pool[random() % pool.size()];
      if (prefix.length < 12) {
        continue;
      }
      if (fib_->find(prefix) != no_route) {
        ASSERT_TRUE(fib_->remove(prefix));
      } else {
        ASSERT_TRUE(fib_->add(prefix, static_cast<NextHopId>(1 + round * 6 + change)));
      }
    }
    const std::vector<NextHopId> after = answers(probes);
    do {
      mirror.step(round % 3 == 0 ? 1U << 16 : 256, random, [&] {
        ++runs;
        for (std::size_t i = 0; i < probes.size(); ++i) {
          const NextHopId now = mirror.lookup(probes[i]);
          ASSERT_TRUE(now == before[i] || now == after[i])
              << probes[i].str() << ": " << now << " is neither " << before[i] << " nor " << after[i];
        }
      });
      ASSERT_FALSE(HasFatalFailure());
    } while (!mirror.up_to_date());
    for (std::size_t i = 0; i < probes.size(); ++i) {
      ASSERT_EQ(mirror.lookup(probes[i]), after[i]) << probes[i].str();
    }
  }
  EXPECT_GT(runs, 400U);
}

TEST_P(ChangeLogTest, ManyChangesOfOneRouteAreSentOnce) {
  std::mt19937_64 random(3);
  Mirror mirror(*trie_);
  const auto prefix = packet::IpPrefix::parse(GetParam() == 4 ? "10.1.2.0/24" : "2001:d00::/24").value();
  for (NextHopId id = 1; id <= 1000; ++id) {
    ASSERT_TRUE(fib_->add(prefix, id));
  }
  int runs = 0;
  mirror.step(1U << 16, random, [&] { ++runs; });
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(mirror.up_to_date());
  EXPECT_EQ(mirror.lookup(prefix.address), 1000U);
}

// A queue that walks on through its whole ring looks like a leak for hours: 4 MB for the root's cells.
TEST_P(ChangeLogTest, AMirrorThatKeepsUpTouchesNoNewMemory) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "AddressSanitizer keeps what is freed, and so every change takes new memory";
#endif
  std::mt19937_64 random(5);
  Mirror mirror(*trie_);
  const auto prefix = packet::IpPrefix::parse(GetParam() == 4 ? "10.1.2.0/24" : "2001:d00::/24").value();
  const auto host =
      packet::IpPrefix::host(packet::IpAddress::parse(GetParam() == 4 ? "10.9.2.3" : "2001:db8::1").value());
  const auto churn = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(fib_->add(prefix, 1));
      ASSERT_TRUE(fib_->add(host, 1));
      mirror.step(1U << 16, random, [] {});
      ASSERT_TRUE(fib_->remove(prefix));
      ASSERT_TRUE(fib_->remove(host));
      mirror.step(1U << 16, random, [] {});
      ASSERT_TRUE(mirror.up_to_date());
    }
  };
  const auto new_pages = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  churn(100);
  const auto before = new_pages();
  churn(20'000);  // a page holds 1,024 cells
  EXPECT_LT(new_pages() - before, 20);
}

TEST_P(ChangeLogTest, AWriterAtWorkIsNotWaitedFor) {
  Mirror mirror(*trie_);
  ChangeSet set;
  const std::lock_guard writer(trie_->mutex());
  EXPECT_FALSE(mirror.log().pack(set, 1024, true));
  EXPECT_FALSE(mirror.log().release_retired());
}

TEST_P(ChangeLogTest, BlocksWaitForEveryMirror) {
  std::mt19937_64 random(4);
  auto trie = std::move(Trie::create(GetParam(), 13).value());
  ASSERT_TRUE(fib_->attach(*trie));
  const auto host =
      packet::IpPrefix::host(packet::IpAddress::parse(GetParam() == 4 ? "10.1.2.3" : "2001:db8::1").value());
  const std::uint32_t needs = GetParam() == 4 ? 1 : 13;
  auto first = std::make_unique<Mirror>(*trie);
  auto second = std::make_unique<Mirror>(*trie);
  for (std::uint32_t used = 0; used + needs <= 13; used += needs) {
    ASSERT_TRUE(fib_->add(host, 1));
    ASSERT_TRUE(fib_->remove(host));
  }
  const auto nothing = [] {};
  EXPECT_FALSE(fib_->add(host, 1)) << "all blocks wait";
  first->step(1U << 16, random, nothing);
  const auto refused = fib_->add(host, 1);
  ASSERT_FALSE(refused) << "the second mirror may still read them";
  EXPECT_THAT(refused.error().message, testing::HasSubstr(GetParam() == 4 ? "raise [route] max_ipv4" : "max_ipv6"));
  EXPECT_EQ(fib_->find(host), no_route);
  second->step(1U << 16, random, nothing);
  EXPECT_TRUE(fib_->add(host, 1));
  ASSERT_TRUE(fib_->remove(host));
  // A mirror that goes away takes its claim with it.
  first.reset();
  second.reset();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(fib_->add(host, 1));
    ASSERT_TRUE(fib_->remove(host));
  }
  fib_->detach(*trie);
}

INSTANTIATE_TEST_SUITE_P(Families, ChangeLogTest, testing::Values(4, 6),
                         [](const auto& info) { return "V" + std::to_string(info.param); });

}  // namespace
}  // namespace sluice::lookup
