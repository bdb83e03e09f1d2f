// rte_acl as Classifier drives it, against first match by its definition.
#include "lookup/acl/classifier.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lookup/acl/acl_random_test.h"
#include "lookup/acl/make_rules.h"

namespace sluice::lookup::acl {
namespace {

std::vector<RuleIndex> classify(const Classifier& classifier, const std::vector<Key4>& keys) {
  std::vector<RuleIndex> out(keys.size());
  classifier.classify4(keys.data(), out.data(), static_cast<unsigned>(keys.size()));
  return out;
}

std::vector<RuleIndex> classify(const Classifier& classifier, const std::vector<Key6>& keys) {
  std::vector<RuleIndex> out(keys.size());
  classifier.classify6(keys.data(), out.data(), static_cast<unsigned>(keys.size()));
  return out;
}

template <typename Key>
void expect_first_match(const Classifier& classifier, std::span<const AclRule> rules, const std::vector<Key>& keys) {
  const auto out = classify(classifier, keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(out[i], first_match(rules, keys[i])) << "key " << i;
  }
}

std::unique_ptr<Classifier> make(std::span<const AclRule> rules) {
  auto made = Classifier::create({.name = "test"}, rules);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

class Random : public testing::TestWithParam<RandomRules> {};

TEST_P(Random, AnswersTheFirstMatch) {
  std::mt19937_64 random(7);
  const std::vector<AclRule> rules = random_rules(GetParam(), random);
  const auto classifier = make(rules);
  ASSERT_TRUE(classifier);
  expect_first_match(*classifier, rules, edge_keys<Key4>(rules, random));
  expect_first_match(*classifier, rules, edge_keys<Key6>(rules, random));
}

INSTANTIATE_TEST_SUITE_P(Classifier, Random,
                         testing::Values(RandomRules{.count = 1}, RandomRules{.count = 60},
                                         RandomRules{.count = 300, .any_address = 2, .has_default = true},
                                         RandomRules{.count = 200, .any_address = 100, .port_values = 3000},
                                         RandomRules{.count = 300, .any_address = 2, .tags = 2},
                                         RandomRules{.count = 150, .family = 6, .any_address = 2, .tags = 3},
                                         RandomRules{.count = 60, .family = 6},
                                         RandomRules{.count = 150, .family = 6, .has_default = true}));

TEST(ClassifierTest, WithoutRulesNothingMatches) {
  const auto classifier = make({});
  ASSERT_TRUE(classifier);
  EXPECT_EQ(classify(*classifier, std::vector<Key4>(3)), std::vector<RuleIndex>(3, no_match));
  EXPECT_EQ(classify(*classifier, std::vector<Key6>(3)), std::vector<RuleIndex>(3, no_match));
}

TEST(ClassifierTest, MadeSetsOfBothFamilies) {
  for (const RuleMix mix : all_mixes) {
    const auto rules4 = make_rules(mix, 300, 5, 4);
    const auto rules6 = make_rules(mix, 300, 5, 6);
    std::vector<AclRule> rules(rules4);
    rules.insert(rules.end(), rules6.begin(), rules6.end());
    const auto classifier = make(rules);
    ASSERT_TRUE(classifier);
    const auto keys4 = make_headers4(rules4, 2000, 6);
    const auto out = classify(*classifier, keys4);
    EXPECT_GT(std::count_if(out.begin(), out.end(), [](RuleIndex at) { return at != no_match; }), 1000);
    expect_first_match(*classifier, rules, keys4);
    expect_first_match(*classifier, rules, make_headers6(rules6, 2000, 6));
  }
}

TEST(ClassifierTest, EverySearchAnswersAlike) {
  const auto rules = make_rules(RuleMix::ipc, 300, 5);
  const auto keys = make_headers4(rules, 1000, 6);
  const auto classifier = make(rules);
  ASSERT_TRUE(classifier);
  for (const Search search : {Search::avx2, Search::avx512x16, Search::avx512x32, Search::widest}) {
    if (classifier->use(search)) {
      expect_first_match(*classifier, rules, keys);
    } else {
      EXPECT_NE(search, Search::widest);
    }
  }
}

TEST(ClassifierTest, TwoOfOneNameLiveBesideEachOther) {
  std::vector<AclRule> one(1);
  std::vector<AclRule> none_of_tcp(1);
  none_of_tcp[0].protocol = {17, 0xff};
  const auto first = make(one);
  const auto second = make(none_of_tcp);
  ASSERT_TRUE(first && second);
  Key4 key{};
  key.protocol = 6;
  EXPECT_EQ(classify(*first, std::vector{key})[0], 0U);
  EXPECT_EQ(classify(*second, std::vector{key})[0], no_match);
}

TEST(ClassifierTest, AnErrorSaysWhatDoesNotFit) {
  const auto rules = make_rules(RuleMix::fw, 500, 1);
  const auto made = Classifier::create({.name = "small", .max_table_bytes = 4096}, rules);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("500 IPv4 rules do not fit"), std::string::npos) << made.error().message;
}

TEST(ClassifierTest, RefusesWhatNoRuleCanBe) {
  std::vector<AclRule> rules(2);
  rules[1].source_port = {5, 4};
  const auto made = Classifier::create({}, rules);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "ACL rule 1: a port range ends before it begins");
}

}  // namespace
}  // namespace sluice::lookup::acl
