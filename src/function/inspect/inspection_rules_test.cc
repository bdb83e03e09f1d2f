// What all lanes share, of as many rules as the largest public sets have: how far it is said, and that rules are found.
#include "function/inspect/inspection_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "function/inspect/inspection_trial_test.h"

namespace sluice::function {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::uint32_t many = 23'000;

// Made up, of the rule with that sid; of no other.
std::string content_of(std::uint32_t sid) {
  std::mt19937 random(sid);
  std::string text(12, ' ');
  for (char& letter : text) letter = static_cast<char>('a' + random() % 26);
  return text;
}

match::RuleSet set_of(const std::string& text) {
  auto set = match::read_rules_text(text, "test.rules");
  EXPECT_TRUE(set) << set.error().message;
  EXPECT_THAT(set->refused, IsEmpty());
  return std::move(*set);
}

class Sids : public AlertSink {
 public:
  void alert(const Alert& alert) override {
    reported_.push_back(alert.rules->detector().rules().rules[alert.rule].sid);
  }
  std::vector<std::uint32_t> take() { return std::exchange(reported_, {}); }

 private:
  std::vector<std::uint32_t> reported_;
};

TEST(InspectionRules, ManyAreMadeWithProgressAndFound) {
  std::string text;
  for (std::uint32_t sid = 1; sid <= many; ++sid) {
    text += "alert ip any any -> any any (content:\"" + content_of(sid) + "\"; sid:" + std::to_string(sid) + ";)\n";
  }
  std::vector<std::pair<std::size_t, std::size_t>> steps;
  const auto rules = InspectionRules::make(set_of(text), nullptr, [&](std::size_t done, std::size_t total) {
    steps.emplace_back(done, total);
    return true;
  });
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ((*rules)->detector().rules().rules.size(), many);
  ASSERT_GE(steps.size(), 2U);
  EXPECT_THAT(steps.front(), Pair(0U, many));
  EXPECT_THAT(steps.back(), Pair(many, many));
  EXPECT_THAT(steps, Each(Pair(testing::_, many)));
  EXPECT_TRUE(std::ranges::is_sorted(steps));

  for (const bool by_device : {false, true}) {
    SCOPED_TRACE(by_device);
    Sids sids;
    Inspection inspection(std::make_unique<InspectionSearch>(*rules), test::small_settings(), sids);
    const auto found_in = [&](const std::string& payload) {
      const packet::Bytes frame = packet::PacketBuilder()
                                      .ipv4("10.0.0.1", "10.0.0.2")
                                      .udp(4000, 53)
                                      .payload({payload.begin(), payload.end()})
                                      .build();
      test::inspect(inspection, {reinterpret_cast<const char*>(frame.data()), frame.size()}, 1000, by_device);
      return sids.take();
    };
    EXPECT_THAT(found_in(content_of(many + 1)), IsEmpty());
    EXPECT_THAT(found_in("a" + content_of(many) + content_of(many + 1) + content_of(1) + "z" + content_of(many / 2)),
                ElementsAre(1, many / 2, many));
  }
}

TEST(InspectionRules, MakingThemEndsWhereItIsAskedToStop) {
  const match::RuleSet set = set_of(
      "alert udp any any -> any any (content:\"one\"; sid:1;)\nalert udp any any -> any any (content:\"two\"; sid:2;)\n"
      "alert http any any -> any any (http.uri; content:\"three\"; sid:3;)\n");
  const std::vector<std::pair<std::size_t, std::size_t>> steps = {{0, 3}, {2, 3}, {3, 3}};
  for (std::size_t end = 1; end <= steps.size() + 1; ++end) {
    std::vector<std::pair<std::size_t, std::size_t>> steps_seen;
    const auto rules = InspectionRules::make(set, nullptr, [&](std::size_t done, std::size_t total) {
      steps_seen.emplace_back(done, total);
      return steps_seen.size() < end;
    });
    const std::size_t expected = std::min(end, steps.size());
    EXPECT_THAT(steps_seen, testing::ElementsAreArray(steps.data(), expected));
    ASSERT_EQ(rules.has_value(), end > steps.size());
    if (!rules) {
      EXPECT_EQ(rules.error().message, "interrupted while rules were compiled");
    }
  }
}

}  // namespace
}  // namespace sluice::function
