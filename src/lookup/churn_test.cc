// Random changes on small tables with many overlaps: after each step the CPU's table, the trie and a mirror that
// applies change sets must all answer as the definition of longest-prefix match does.
#include <gtest/gtest.h>

#include <algorithm>

#include "lookup/change_log.h"
#include "lookup/fib.h"
#include "lookup/reference_test.h"
#include "lookup/trie.h"

namespace sluice::lookup {
namespace {

struct Case {
  int family;
  std::uint64_t seed;
};

class Churn : public testing::TestWithParam<Case> {};

TEST_P(Churn, AllTablesAnswerAsTheDefinition) {
  const auto [family, seed] = GetParam();
  std::mt19937_64 random(seed);
  auto fib = Fib::create({.name = "churn", .max_routes4 = 2000, .max_routes6 = 2000, .groups4 = 400, .groups6 = 4000});
  ASSERT_TRUE(fib) << fib.error().message;
  auto trie = Trie::create(family, 4000);
  ASSERT_TRUE(trie) << trie.error().message;
  ASSERT_TRUE((*fib)->attach(**trie));
  Reference reference;
  std::vector<packet::IpPrefix> pool;
  for (int i = 0; i < 120; ++i) {
    pool.push_back(random_overlapping_prefix(family, random));
  }
  for (int step = 0; step < 1500; ++step) {
    const packet::IpPrefix& prefix = pool[random() % pool.size()];
    if (random() % 5 < 2) {
      EXPECT_EQ(reference.remove(prefix), (*fib)->remove(prefix).has_value()) << prefix.str();
    } else {
      // Few ids: prefixes often have the next hop of the prefix around them.
      const auto id = static_cast<NextHopId>(1 + random() % 3);
      const auto ok = (*fib)->add(prefix, id);
      ASSERT_TRUE(ok) << ok.error().message;
      reference.add(prefix, id);
    }
    std::vector<packet::IpAddress> probes;
    append_edges(prefix, random, probes);
    for (int i = 0; i < 6; ++i) {
      append_edges(pool[random() % pool.size()], random, probes);
    }
    if (step % 50 == 0) {
      for (const auto& p : pool) {
        append_edges(p, random, probes);
      }
    }
    const std::vector<NextHopId> from_fib = lookup_all(**fib, probes);
    for (std::size_t i = 0; i < probes.size(); ++i) {
      const NextHopId expected = reference.lookup(probes[i]);
      ASSERT_EQ(from_fib[i], expected) << "rte_fib, step " << step << ", " << probes[i].str() << " after "
                                       << prefix.str();
      ASSERT_EQ(lookup_one(**trie, probes[i]), expected)
          << "trie, step " << step << ", " << probes[i].str() << " after " << prefix.str();
    }
    ASSERT_EQ(family == 4 ? (*fib)->size4() : (*fib)->size6(), reference.size());
    ASSERT_EQ((*fib)->groups_used(family), (*trie)->blocks_used());
  }
  for (const auto& prefix : pool) {
    if (reference.remove(prefix)) {
      ASSERT_TRUE((*fib)->remove(prefix));
    }
  }
  EXPECT_EQ((*trie)->blocks_used(), 0U);
  EXPECT_EQ((*fib)->groups_used(family), 0U);
}

INSTANTIATE_TEST_SUITE_P(Tables, Churn,
                         testing::Values(Case{4, 1}, Case{4, 2}, Case{4, 3}, Case{6, 1}, Case{6, 2}, Case{6, 3}),
                         [](const auto& info) {
                           return "V" + std::to_string(info.param.family) + "Seed" + std::to_string(info.param.seed);
                         });

}  // namespace
}  // namespace sluice::lookup
