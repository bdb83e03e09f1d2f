#include "match/detect/alert_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace sluice::match {
namespace {

constexpr std::uint64_t second = 1'000'000;

// Rules 1:1, 1:2 and 3:1, in this order.
RuleSet rules_with(const std::string& lines) {
  auto set = read_rules_text(
      "alert ip any any -> any any (sid:1;)\nalert ip any any -> any any (sid:2;)\n"
      "alert ip any any -> any any (gid:3; sid:1;)\n" +
          lines,
      "test.rules");
  EXPECT_TRUE(set) << set.error().message;
  return set ? std::move(*set) : RuleSet{};
}

PacketFacts packet_of(const char* source, const char* destination) {
  PacketFacts packet;
  packet.source = *packet::IpAddress::parse(source);
  packet.destination = *packet::IpAddress::parse(destination);
  packet.family = packet.source.family;
  return packet;
}

// What is reported of these alerts, of rules by number, all within one second: '1', else '.'.
std::string reported(AlertFilter& filter, std::initializer_list<std::uint32_t> rules, const PacketFacts& packet,
                     std::uint64_t at = second) {
  std::string all;
  for (const std::uint32_t rule : rules) all += filter.reports(rule, packet, 7, at) ? '1' : '.';
  return all;
}

TEST(AlertFilterTest, ReportsEverythingWithoutLinesAndTakesNoMemory) {
  const RuleSet rules = rules_with("");
  AlertFilter filter(rules, {});
  EXPECT_EQ(reported(filter, {0, 1, 2, 0}, packet_of("10.0.0.1", "10.0.0.2")), "1111");
  EXPECT_EQ(filter.memory_bytes(), 0U);
  EXPECT_EQ(filter.kept_back(), 0U);
}

TEST(AlertFilterTest, KeepsBackWhatIsSuppressed) {
  // Alerts of rules 1:1, 1:2 and 3:1 in packets from 10.0.0.1 to 192.0.2.1, the other way, and of IPv6.
  const struct {
    const char* lines;
    const char* reported;
  } cases[] = {
      {"suppress gen_id 1, sig_id 1\n", ".11 .11 .11"},
      {"suppress gen_id 1, sig_id 0\n", "..1 ..1 ..1"},
      {"suppress gen_id 0, sig_id 0\n", "... ... ..."},
      {"suppress gen_id 3, sig_id 1\nsuppress gen_id 1, sig_id 2\n", "1.. 1.. 1.."},
      {"suppress gen_id 1, sig_id 9\n", "111 111 111"},
      {"suppress gen_id 1, sig_id 1, track by_src, ip 10.0.0.0/8\n", ".11 111 111"},
      {"suppress gen_id 1, sig_id 1, track by_dst, ip 10.0.0.0/8\n", "111 .11 111"},
      {"suppress gen_id 1, sig_id 1, track by_either, ip 10.0.0.0/8\n", ".11 .11 111"},
      {"suppress gen_id 1, sig_id 1, track by_src, ip [10.0.0.0/8,!10.0.0.1]\n", "111 111 111"},
      {"suppress gen_id 1, sig_id 0, track by_src, ip 2001:db8::/32\n", "111 111 ..1"},
      {"suppress gen_id 1, sig_id 1, track by_src, ip 10.0.0.1\n"
       "suppress gen_id 1, sig_id 1, track by_src, ip 192.0.2.1\n",
       ".11 .11 111"},
  };
  for (const auto& one : cases) {
    const RuleSet rules = rules_with(one.lines);
    AlertFilter filter(rules, {});
    const std::string all = reported(filter, {0, 1, 2}, packet_of("10.0.0.1", "192.0.2.1")) + " " +
                            reported(filter, {0, 1, 2}, packet_of("192.0.2.1", "10.0.0.1")) + " " +
                            reported(filter, {0, 1, 2}, packet_of("2001:db8::1", "2001:db8::2"));
    EXPECT_EQ(all, one.reported) << one.lines;
    EXPECT_EQ(filter.kept_back(), static_cast<std::uint64_t>(std::ranges::count(all, '.')));
    EXPECT_EQ(filter.memory_bytes(), 0U) << "nothing is counted";
  }
}

TEST(AlertFilterTest, CountsByTheLineThatNamesARuleMostClosely) {
  const std::string limit = "type limit, track by_src, count 1, seconds 60\n";
  const struct {
    std::string lines;
    const char* reported;  // of 1:1 three times, 1:2 three times, 3:1 three times
  } cases[] = {
      {"event_filter gen_id 0, sig_id 0, " + limit, "1..1..1.."},
      {"event_filter gen_id 1, sig_id 0, " + limit, "1..1..111"},
      {"threshold gen_id 1, sig_id 2, " + limit, "1111..111"},
      {"event_filter gen_id 1, sig_id 2, type threshold, track by_src, count 2, seconds 60\n"
       "event_filter gen_id 0, sig_id 0, " +
           limit,
       "1...1.1.."},
      {"event_filter gen_id 1, sig_id 2, type both, track by_src, count 3, seconds 60\n", "111..1111"},
      {"event_filter gen_id 0, sig_id 0, " + limit +
           "event_filter gen_id 1, sig_id 1, type limit, track by_src, count -1, seconds 60\n",
       "1111..1.."},
      {"event_filter gen_id 1, sig_id 1, type limit, track by_src, count 2, seconds 60\n"
       "event_filter gen_id 1, sig_id 1, " +
           limit,
       "1..111111"},
  };
  for (const auto& one : cases) {
    const RuleSet rules = rules_with(one.lines);
    AlertFilter filter(rules, {});
    EXPECT_EQ(reported(filter, {0, 0, 0, 1, 1, 1, 2, 2, 2}, packet_of("10.0.0.1", "192.0.2.1")), one.reported)
        << one.lines;
  }
}

TEST(AlertFilterTest, ASuppressedAlertIsNotCounted) {
  const RuleSet rules = rules_with(
      "suppress gen_id 1, sig_id 1, track by_dst, ip 192.0.2.9\n"
      "event_filter gen_id 1, sig_id 1, type limit, track by_src, count 1, seconds 60\n");
  AlertFilter filter(rules, {});
  EXPECT_EQ(reported(filter, {0, 0}, packet_of("10.0.0.1", "192.0.2.9")), "..");
  EXPECT_EQ(reported(filter, {0, 0}, packet_of("10.0.0.1", "192.0.2.1")), "1.");
}

TEST(AlertFilterTest, CountsGoOnWithOtherRules) {
  const std::string line = "event_filter gen_id 1, sig_id 1, type limit, track by_src, count 1, seconds 60\n";
  const RuleSet before = rules_with(line), after = rules_with("\n" + line);
  AlertFilter old(before, {}), fresh(after, {});
  const PacketFacts packet = packet_of("10.0.0.1", "192.0.2.1");
  EXPECT_EQ(reported(old, {0, 0}, packet), "1.");
  fresh.take_over(old);
  EXPECT_EQ(reported(fresh, {0}, packet, 2 * second), ".");
  EXPECT_EQ(reported(fresh, {0}, packet, 70 * second), "1");
  EXPECT_EQ(fresh.kept_back(), 2U);
}

}  // namespace
}  // namespace sluice::match
