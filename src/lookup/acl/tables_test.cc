// What tables come to: their sizes, their limits, and the steps in building them. That they answer right is
// gpu_classifier_test.cc's.
#include "lookup/acl/tables.h"

#include <gtest/gtest.h>

#include "lookup/acl/make_rules.h"
#include "lookup/acl/partition.h"
#include "lookup/acl/port_classes.h"
#include "lookup/acl/rule_lists.h"

namespace sluice::lookup::acl {
namespace {

TEST(PartitionTest, CutsASpaceWhereIntervalsBeginAndEnd) {
  const std::vector<Interval> intervals = {{10, 19}, {0, 99}, {15, 99}, {10, 19}, {40, 40}};
  const Partition partition(intervals, 99);
  const std::vector<Number> starts = {0, 10, 15, 20, 40, 41};
  EXPECT_EQ(partition.starts, starts);
  // 20 to 39 and 41 on are one class.
  EXPECT_EQ(partition.class_of, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 3}));
  EXPECT_EQ(partition.classes, 5U);
  const auto covered = partition.covered(3);
  EXPECT_EQ(std::vector<std::uint32_t>(covered.begin(), covered.end()), (std::vector<std::uint32_t>{1, 2}));
}

TEST(PartitionTest, AllAddressesOfAFamily) {
  EXPECT_EQ(interval_of({}, 4).last, Number{0xffff'ffff});
  EXPECT_EQ(interval_of({}, 6).last, ~Number{0});
  const auto host = interval_of(*packet::IpPrefix::parse("255.255.255.255"), 4);
  EXPECT_EQ(host, (Interval{0xffff'ffff, 0xffff'ffff}));
  const auto six = interval_of(*packet::IpPrefix::parse("2001:db8::/32"), 6);
  EXPECT_EQ(static_cast<std::uint64_t>(six.first >> 96), 0x2001'0db8U);
  EXPECT_EQ(six.last - six.first, (Number{1} << 96) - 1);
}

TEST(RuleListsTest, LeavesOutWhatAnEarlierRuleHides) {
  std::vector<AclRule> rules(4);
  rules[0].protocol = {6, 0xff};
  rules[1].protocol = {6, 0xff};
  rules[1].destination_port = {80, 80};
  // rules[2] is everything
  RuleLists lists(rules);
  const auto tcp = lists.append(RuleLists::empty, 0);
  EXPECT_EQ(lists.append(tcp, 1), tcp);
  const auto all = lists.append(tcp, 2);
  EXPECT_EQ(lists.append(all, 3), all);
  EXPECT_EQ(lists.rules(all), (std::vector<RuleIndex>{0, 2}));
}

TEST(PortClassesTest, RefusesMoreThanTheLimit) {
  std::vector<AclRule> rules(100);
  std::vector<RuleIndex> of;
  for (RuleIndex i = 0; i < rules.size(); ++i) {
    rules[i].source_port = rules[i].destination_port = {static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(i)};
    of.push_back(i);
  }
  EXPECT_TRUE(PortClasses::make(rules, of, 101 * 101));
  EXPECT_FALSE(PortClasses::make(rules, of, 101 * 101 - 1));
}

TEST(TablesTest, LongListsBecomeRowsAndShortOnesDoNot) {
  std::vector<AclRule> rules(8);
  for (std::uint16_t i = 0; i < 8; ++i) {
    rules[i].destination_port = {i, i};
  }
  const auto short_lists = Tables::build(rules);
  ASSERT_TRUE(short_lists);
  EXPECT_EQ(short_lists->shape4.records, 8U);
  EXPECT_EQ(short_lists->shape4.rows, 0U);
  rules.emplace_back().destination_port = {99, 99};
  const auto long_lists = Tables::build(rules);
  ASSERT_TRUE(long_lists);
  EXPECT_EQ(long_lists->shape4.records, 0U);
  EXPECT_EQ(long_lists->shape4.rows, 1U);
  EXPECT_EQ(long_lists->shape4.port_classes, 10U);
}

// A row is found without the tags; lists of other addresses become rows all the same.
TEST(TablesTest, AListWithATagStaysAList) {
  std::vector<AclRule> rules(18);
  for (std::uint16_t i = 0; i < rules.size(); ++i) {
    rules[i].destination_port = {i, i};
    if (i < 9) rules[i].source = *packet::IpPrefix::parse("10.1.2.0/24");
  }
  rules[17].tags = {1, 1};
  const auto made = Tables::build(rules);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->shape4.rows, 1U);
  EXPECT_EQ(made->shape4.records, 9U);
}

TEST(TablesTest, TenThousandRulesStayFarBelowTheLimit) {
  for (const RuleMix mix : all_mixes) {
    const auto made = Tables::build(make_rules(mix, 10'000, 1));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LT(made->bytes(), 64U << 20) << name_of(mix);
  }
}

TEST(TablesTest, PagesTakeTheCapacityOfTheRulesAndNotOfTheClasses) {
  std::vector<AclRule> rules(3000);
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    rules[i].source = packet::IpPrefix::host(packet::IpAddress::v4(0x0a00'0000 + 2 * i));
    rules[i].destination = packet::IpPrefix::host(packet::IpAddress::v4(0x0b00'0000 + 2 * i));
  }
  const auto flat = Tables::build(rules, {.most_flat_cells = 3001 * 3001});
  const auto paged = Tables::build(rules, {.most_flat_cells = 3001 * 3001 - 1});
  ASSERT_TRUE(flat && paged);
  EXPECT_EQ(flat->shape4.cells, 3001U * 3001U);
  EXPECT_EQ(flat->shape4.cell_words, 3001U * 3001U);
  EXPECT_EQ(flat->shape4.paged_groups, 0U);
  EXPECT_EQ(paged->shape4.paged_groups, 1U);
  EXPECT_LT(paged->shape4.cell_words, 3001U * (94 + 32) + 100);
}

TEST(TablesTest, FiftyThousandRulesStayBelowTheLimit) {
  for (const RuleMix mix : all_mixes) {
    const auto made = Tables::build(make_rules(mix, 50'000, 1));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_GT(made->shape4.paged_groups, 0U) << name_of(mix);
  }
}

TEST(TablesTest, AnErrorSaysWhatTheLimitIs) {
  const auto rules = make_rules(RuleMix::acl, 2000, 1);
  const auto made = Tables::build(rules, {.max_bytes = 1U << 20});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("the limit is 1 MB"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace sluice::lookup::acl
