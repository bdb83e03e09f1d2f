// The GPU's classifier (or the host SIMT shim's), against first match by its definition.
#include "lookup/acl/gpu_classifier.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../tests/support/gpu.h"
#include "lookup/acl/acl_random_test.h"
#include "lookup/acl/make_rules.h"

namespace sluice::lookup::acl {
namespace {

constexpr std::size_t most_keys = 8192;

class GpuClassifierTest : public testing::TestWithParam<RandomRules> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    auto gpu = device::Gpu::open(0, 2);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
    keys4_ = static_cast<Key4*>(gpu_->allocate_host(most_keys * sizeof(Key4)).value());
    keys6_ = static_cast<Key6*>(gpu_->allocate_host(most_keys * sizeof(Key6)).value());
    out4_ = static_cast<RuleIndex*>(gpu_->allocate_host(most_keys * sizeof(RuleIndex)).value());
    out6_ = static_cast<RuleIndex*>(gpu_->allocate_host(most_keys * sizeof(RuleIndex)).value());
  }

  void make(std::span<const AclRule> rules, const Tables::Options& tables = {}) {
    auto made = GpuClassifier::create(*gpu_, rules, {.tables = tables, .max_sync_bytes = 64 * 1024});
    ASSERT_TRUE(made) << made.error().message;
    classifier_ = std::move(*made);
  }

  void wait(device::GpuStream& stream) {
    ASSERT_TRUE(stream.mark());
    while (stream.pending_marks() > 0) {
      ASSERT_NE(stream.poll(), device::MarkState::failed) << gpu_->why();
    }
  }

  Expected<void> replace(std::span<const AclRule> rules, std::shared_ptr<const void> of = nullptr) {
    auto prepared = classifier_->prepare(rules);
    if (!prepared) return tl::unexpected(prepared.error());
    classifier_->publish(std::move(*prepared), std::move(of));
    return {};
  }

  // Both families in one launch.
  void expect_first_match(std::span<const AclRule> rules, std::vector<Key4> keys4, std::vector<Key6> keys6) {
    std::mt19937_64 random(1);
    std::shuffle(keys4.begin(), keys4.end(), random);
    std::shuffle(keys6.begin(), keys6.end(), random);
    keys4.resize(std::min(keys4.size(), most_keys));
    keys6.resize(std::min(keys6.size(), most_keys));
    std::copy(keys4.begin(), keys4.end(), keys4_);
    std::copy(keys6.begin(), keys6.end(), keys6_);
    const auto ok = classifier_->classify(gpu_->stream(1), keys4_, out4_, static_cast<std::uint32_t>(keys4.size()),
                                          keys6_, out6_, static_cast<std::uint32_t>(keys6.size()));
    ASSERT_TRUE(ok) << ok.error().message;
    wait(gpu_->stream(1));
    for (std::size_t i = 0; i < keys4.size(); ++i) {
      ASSERT_EQ(out4_[i], first_match(rules, keys4[i])) << "IPv4 key " << i;
    }
    for (std::size_t i = 0; i < keys6.size(); ++i) {
      ASSERT_EQ(out6_[i], first_match(rules, keys6[i])) << "IPv6 key " << i;
    }
  }

  std::unique_ptr<device::Gpu> gpu_;
  std::unique_ptr<GpuClassifier> classifier_;
  Key4* keys4_ = nullptr;
  Key6* keys6_ = nullptr;
  RuleIndex* out4_ = nullptr;
  RuleIndex* out6_ = nullptr;
};

TEST_P(GpuClassifierTest, AnswersTheFirstMatch) {
  std::mt19937_64 random(8);
  const std::vector<AclRule> rules = random_rules(GetParam(), random);
  make(rules);
  const auto keys4 = edge_keys<Key4>(rules, random);
  const auto keys6 = edge_keys<Key6>(rules, random);
  expect_first_match(rules, keys4, keys6);
  make(rules, {.most_flat_cells = 0});  // every group in pages
  expect_first_match(rules, keys4, keys6);
  make(rules, {.most_flat_cells = 2000});  // some
  expect_first_match(rules, keys4, keys6);
}

// Short lists; lists of more than eight, which become rows; more port ranges than rows are made for (port_values).
INSTANTIATE_TEST_SUITE_P(Random, GpuClassifierTest,
                         testing::Values(RandomRules{.count = 1}, RandomRules{.count = 60},
                                         RandomRules{.count = 300, .any_address = 2, .has_default = true},
                                         RandomRules{.count = 300, .any_address = 100, .port_values = 3000},
                                         RandomRules{.count = 2500, .any_address = 1, .port_values = 30'000},
                                         RandomRules{.count = 300, .any_address = 2, .tags = 2},
                                         RandomRules{.count = 300, .any_address = 2, .tags = 30},
                                         RandomRules{.count = 300, .family = 6, .any_address = 2, .tags = 2},
                                         RandomRules{.count = 60, .family = 6},
                                         RandomRules{.count = 300, .family = 6, .has_default = true}));

TEST_F(GpuClassifierTest, WithoutRulesNothingMatches) {
  make({});
  expect_first_match({}, std::vector<Key4>(3), std::vector<Key6>(3));
  const auto ok = classifier_->classify(gpu_->stream(0), nullptr, nullptr, 0, nullptr, nullptr, 0);
  EXPECT_TRUE(ok) << ok.error().message;
}

TEST_F(GpuClassifierTest, MadeSets) {
  for (const RuleMix mix : all_mixes) {
    const auto rules4 = make_rules(mix, 1000, 3, 4);
    const auto rules6 = make_rules(mix, 400, 3, 6);
    std::vector<AclRule> rules(rules4);
    rules.insert(rules.end(), rules6.begin(), rules6.end());
    make(rules);
    expect_first_match(rules, make_headers4(rules4, 3000, 4), make_headers6(rules6, 3000, 4));
  }
}

TEST_F(GpuClassifierTest, AChangeTakesPlaceAtOnceAndAsAWhole) {
  std::vector<AclRule> before = make_rules(RuleMix::acl, 500, 1);
  std::vector<AclRule> after = make_rules(RuleMix::fw, 900, 2);
  const auto keys = make_headers4(before, 1000, 3);
  make(before);
  EXPECT_EQ(classifier_->generation(), 1U);
  EXPECT_TRUE(classifier_->up_to_date());
  ASSERT_TRUE(replace(after));
  EXPECT_FALSE(classifier_->up_to_date());
  unsigned steps = 0;
  for (; !classifier_->up_to_date(); ++steps) {
    ASSERT_LT(steps, 1000U);
    const bool is_new = classifier_->generation() == 2;
    expect_first_match(is_new ? after : before, keys, {});
    ASSERT_TRUE(classifier_->sync(gpu_->stream(0)));
    wait(gpu_->stream(0));
  }
  EXPECT_GT(steps, 3U);  // it went over in pieces
  EXPECT_EQ(classifier_->generation(), 2U);
  expect_first_match(after, keys, {});
}

// What answers are looked up in: a list of the host's stays as long as launches may use its copy.
TEST_F(GpuClassifierTest, AListOnTheHostIsHeldAsLongAsItsCopyIsUsed) {
  const auto rules = make_rules(RuleMix::acl, 100, 1);
  const auto name = [](int number) { return std::make_shared<const int>(number); };
  const auto used = [&] { return *static_cast<const int*>(classifier_->of()); };
  auto first = name(1), second = name(2), third = name(3);
  const std::weak_ptr<const int> held[] = {first, second, third};
  auto made = GpuClassifier::create(*gpu_, rules, std::move(first));
  ASSERT_TRUE(made) << made.error().message;
  classifier_ = std::move(*made);
  ASSERT_TRUE(classifier_->prepare(rules)) << "and not published";
  ASSERT_TRUE(replace(rules, std::move(second)));
  ASSERT_TRUE(replace(rules, std::move(third)));
  EXPECT_TRUE(held[1].expired()) << "forgotten";
  EXPECT_EQ(classifier_->reclaim(), 1U);
  for (int steps = 0; classifier_->generation() == 1; ++steps) {
    ASSERT_LT(steps, 1000);
    EXPECT_EQ(used(), 1);
    ASSERT_TRUE(classifier_->sync(gpu_->stream(0)));
    wait(gpu_->stream(0));
  }
  EXPECT_EQ(used(), 3);
  EXPECT_FALSE(held[0].expired()) << "it goes on the thread that publishes";
  EXPECT_EQ(classifier_->reclaim(), 0U);
  EXPECT_TRUE(held[0].expired());
  ASSERT_TRUE(replace(rules, name(4)));
  gpu_->lose("for a test");
  EXPECT_TRUE(classifier_->lost());
  EXPECT_EQ(classifier_->reclaim(), 0U);
  EXPECT_TRUE(held[2].expired()) << "a lost GPU uses none";
}

TEST_F(GpuClassifierTest, ManyChangesUseTheSameMemory) {
  const auto sets = {make_rules(RuleMix::acl, 200, 1), make_rules(RuleMix::fw, 200, 2),
                     make_rules(RuleMix::ipc, 200, 3)};
  make(*sets.begin());
  std::size_t bytes = 0;
  for (int round = 0; round < 4; ++round) {
    for (const auto& rules : sets) {
      ASSERT_TRUE(replace(make_rules(RuleMix::acl, 100, 9)));  // forgotten, or taken first
      ASSERT_TRUE(replace(rules));
      while (!classifier_->up_to_date()) {
        ASSERT_TRUE(classifier_->sync(gpu_->stream(0)));
        wait(gpu_->stream(0));
      }
      expect_first_match(rules, make_headers4(rules, 200, 3), {});
    }
    bytes = round == 1 ? classifier_->device_bytes() : bytes;
  }
  EXPECT_EQ(classifier_->device_bytes(), bytes);
}

TEST_F(GpuClassifierTest, AListThatCannotBeLeavesTheOldOne) {
  const auto rules = make_rules(RuleMix::acl, 100, 1);
  make(rules);
  std::vector<AclRule> wrong(1);
  wrong[0].flags = {1, 0};
  EXPECT_FALSE(replace(wrong));
  EXPECT_TRUE(classifier_->up_to_date());
  expect_first_match(rules, make_headers4(rules, 100, 2), {});
}

}  // namespace
}  // namespace sluice::lookup::acl
