#include "match/detect/rate_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "packet/headers.h"

namespace sluice::match {
namespace {

constexpr std::uint64_t second = 1'000'000;

class RateFilterTest : public testing::Test {
 protected:
  // One rule with the option.
  void use(const std::string& option, RateSettings settings = {}) {
    auto set = read_rules_text("alert ip any any -> any any (" + option + " sid:1;)\n", "test.rules");
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_THAT(set->refused, testing::IsEmpty()) << set->refused[0].message;
    rules_ = std::move(*set);
    settings.seed = 7;
    rates_ = std::make_unique<RateFilter>(rules_, settings);
  }

  // '.': nothing, 'a': action only, 'A': all.
  char judge(std::uint64_t at, std::uint32_t source = 1, std::uint32_t destination = 2, std::uint16_t source_port = 0,
             std::uint64_t flow = 0) {
    PacketFacts packet;
    packet.family = 4;
    packet.source = packet::IpAddress::v4(source);
    packet.destination = packet::IpAddress::v4(destination);
    packet.has_ports = source_port != 0;
    packet.source_port = source_port;
    packet.destination_port = 80;
    return ".aA"[static_cast<int>(rates_->judge(0, packet, flow, at))];
  }
  // One match at each of these seconds.
  std::string at(std::initializer_list<unsigned> seconds) {
    std::string all;
    for (const unsigned s : seconds) all += judge(1000 * second + s * second);
    return all;
  }

  RuleSet rules_;
  std::unique_ptr<RateFilter> rates_;
};

TEST_F(RateFilterTest, ARuleWithoutARateIsAlwaysReported) {
  use("");
  EXPECT_EQ(at({0, 0, 0}), "AAA");
  EXPECT_EQ(rates_->memory_bytes(), 0U);
}

TEST_F(RateFilterTest, CountsAsEachTypeSays) {
  const struct {
    const char* option;
    std::initializer_list<unsigned> seconds;
    const char* verdicts;
  } cases[] = {
      // The period of 10 s ends with its tenth second; the next begins with the first match behind that.
      {"threshold: type limit, track by_src, count 2, seconds 10;", {0, 1, 2, 10, 11, 20, 21, 22}, "AAaaAAaA"},
      {"threshold: type limit, track by_src, count 1, seconds 1;", {0, 0, 1, 2, 3, 4}, "AaaAaA"},
      {"threshold: type threshold, track by_src, count 3, seconds 10;", {0, 1, 2, 3, 4, 5, 6, 11}, "..A..A.."},
      {"threshold: type threshold, track by_src, count 3, seconds 10;", {0, 9, 11, 12, 13}, "....A"},
      {"threshold: type threshold, track by_src, count 1, seconds 10;", {0, 1, 11, 30}, "AAAA"},
      {"threshold: type both, track by_src, count 3, seconds 10;", {0, 1, 2, 3, 10, 11, 12, 13, 14}, "..Aaa..Aa"},
      {"threshold: type both, track by_src, count 1, seconds 10;", {0, 1, 11, 12}, "AaAa"},
      {"detection_filter: track by_src, count 2, seconds 10;", {0, 1, 2, 10, 11, 12, 13}, "..AA..A"},
      {"threshold: type limit, track by_rule, count 2, seconds 10;", {0, 1, 2, 11}, "AAaA"},
  };
  for (const auto& one : cases) {
    use(one.option);
    EXPECT_EQ(at(one.seconds), one.verdicts) << one.option;
  }
}

TEST_F(RateFilterTest, CountsWhatIsTrackedApart) {
  // Matches of (source, destination): (1,2) (1,3) (4,2) (2,1) (1,2).
  const struct {
    const char* track;
    const char* verdicts;
  } cases[] = {{"by_src", "AaAAa"}, {"by_dst", "AAaAa"}, {"by_both", "AAAaa"}, {"by_rule", "Aaaaa"}};
  for (const auto& one : cases) {
    use("threshold: type limit, track " + std::string(one.track) + ", count 1, seconds 60;");
    const std::string all = {judge(1, 1, 2), judge(1, 1, 3), judge(1, 4, 2), judge(1, 2, 1), judge(1, 1, 2)};
    EXPECT_EQ(all, one.verdicts) << one.track;
  }
}

TEST_F(RateFilterTest, ByFlowCountsNothingWithoutAFlow) {
  use("threshold: type limit, track by_flow, count 1, seconds 60;");
  EXPECT_EQ(judge(1, 1, 2, 0, 5), 'A');
  EXPECT_EQ(judge(1, 3, 4, 0, 6), 'A');
  EXPECT_EQ(judge(1, 3, 4, 0, 5), 'a');
  EXPECT_EQ(judge(1, 1, 2, 0, 0), '.');
  EXPECT_EQ(rates_->counters().action_only, 1U);
  EXPECT_EQ(rates_->counters().nothing, 1U);
}

TEST_F(RateFilterTest, FamiliesAndRulesAreCountedApart) {
  auto set = read_rules_text(
      "alert ip any any -> any any (threshold: type limit, track by_src, count 1, seconds 9; sid:1;)\n"
      "alert ip any any -> any any (sid:2;)\n"
      "alert ip any any -> any any (threshold: type limit, track by_src, count 1, seconds 9; sid:3;)\n",
      "test.rules");
  ASSERT_TRUE(set);
  RateFilter rates(*set, {});
  PacketFacts v4, v6;
  v4.family = 4;
  v6.family = 6;
  const auto verdict = [&](std::uint32_t rule, const PacketFacts& packet) { return rates.judge(rule, packet, 0, 5); };
  for (const RateVerdict expected : {RateVerdict::all, RateVerdict::action_only}) {
    EXPECT_EQ(verdict(0, v4), expected);
    EXPECT_EQ(verdict(2, v4), expected);
    EXPECT_EQ(verdict(0, v6), expected);
    EXPECT_EQ(verdict(1, v4), RateVerdict::all);
  }
}

TEST_F(RateFilterTest, UniqueOnCountsDistinctPorts) {
  use("detection_filter: track by_src, count 2, seconds 10, unique_on src_port;");
  EXPECT_EQ(judge(1 * second, 1, 2, 1000), '.');
  EXPECT_EQ(judge(2 * second, 1, 2, 1000), '.');
  EXPECT_EQ(judge(3 * second, 1, 2, 65535), '.');
  EXPECT_EQ(judge(4 * second, 1, 2, 0), '.') << "no port, no count";
  EXPECT_EQ(judge(5 * second, 1, 2, 1000), '.');
  EXPECT_EQ(judge(6 * second, 1, 2, 1001), 'A');
  EXPECT_EQ(judge(7 * second, 1, 2, 1000), 'A') << "the filter is exceeded";
  EXPECT_EQ(judge(12 * second, 1, 2, 1001), '.') << "the next period begins with no ports";
  EXPECT_EQ(judge(13 * second, 1, 2, 1002), '.');
  EXPECT_EQ(judge(14 * second, 1, 2, 1000), 'A');
  use("detection_filter: track by_src, count 1, seconds 10, unique_on dst_port;");
  EXPECT_EQ(judge(1, 1, 2, 1000), '.');
  EXPECT_EQ(judge(1, 1, 2, 1001), '.') << "one destination port only";
}

TEST_F(RateFilterTest, AFullPlaceEvictsTheCountThatEndsFirst) {
  RateSettings settings;
  settings.entries = 1;  // eight
  use("threshold: type limit, track by_src, count 1, seconds 10;", settings);
  for (std::uint32_t source = 1; source <= 8; ++source) EXPECT_EQ(judge(source * second, source), 'A');
  EXPECT_EQ(rates_->counters().evicted, 0U);
  EXPECT_EQ(judge(9 * second, 9), 'A');
  EXPECT_EQ(rates_->counters().evicted, 1U);
  EXPECT_EQ(judge(9 * second, 8), 'a');
  EXPECT_EQ(judge(9 * second, 1), 'A') << "it was evicted";
  EXPECT_EQ(rates_->counters().evicted, 2U);
  // Those whose period is over go without a count.
  for (std::uint32_t source = 20; source < 28; ++source) EXPECT_EQ(judge(100 * second, source), 'A');
  EXPECT_EQ(rates_->counters().evicted, 2U);
}

TEST_F(RateFilterTest, ACountThatLosesItsPortsBeginsAnew) {
  RateSettings settings;
  settings.port_sets = 1;
  use("detection_filter: track by_src, count 1, seconds 10, unique_on src_port;", settings);
  EXPECT_EQ(judge(1, 1, 2, 1000), '.');
  EXPECT_EQ(judge(2, 2, 2, 1000), '.') << "takes the set of the first";
  EXPECT_EQ(rates_->counters().sets_evicted, 1U);
  EXPECT_EQ(judge(3, 1, 2, 1001), '.');
  EXPECT_EQ(rates_->counters().sets_evicted, 2U);
  EXPECT_EQ(judge(4, 1, 2, 1002), 'A');
  EXPECT_EQ(judge(30 * second, 2, 2, 1002), '.');
  EXPECT_EQ(rates_->counters().sets_evicted, 2U) << "that period was over";
}

TEST_F(RateFilterTest, CountsGoOnWithOtherRules) {
  const auto rules = [](const std::string& text) { return read_rules_text(text, "test.rules").value(); };
  const std::string rule = "alert ip any any -> any any (detection_filter: track by_src, seconds 60, count ";
  const RuleSet first = rules(rule + "1; sid:1;)\n" + rule + "2, unique_on src_port; sid:2;)\n");
  const RuleSet second = rules("alert ip any any -> any any (sid:9;)\n" + rule + "2, unique_on src_port; sid:2;)\n" +
                               rule + "1; sid:1;)\n" + rule + "1; gid:3; sid:1;)\n");
  PacketFacts packet;
  packet.family = 4;
  packet.has_ports = true;
  RateFilter before(first, {}), after(second, {});
  EXPECT_EQ(before.judge(0, packet, 0, 5), RateVerdict::nothing);
  for (const std::uint16_t port : {1, 2}) {
    packet.source_port = port;
    EXPECT_EQ(before.judge(1, packet, 0, 5), RateVerdict::nothing);
  }
  after.take_over(before);
  EXPECT_EQ(after.judge(2, packet, 0, 5), RateVerdict::all);
  EXPECT_EQ(after.judge(1, packet, 0, 5), RateVerdict::nothing) << "the port is known";
  packet.source_port = 7;
  EXPECT_EQ(after.judge(1, packet, 0, 5), RateVerdict::all) << "the third of its period";
  EXPECT_EQ(after.judge(3, packet, 0, 5), RateVerdict::nothing) << "another gid";
}

}  // namespace
}  // namespace sluice::match
