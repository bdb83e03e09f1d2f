// What the budgets of a frame leave: it is counted, and the policy decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <x86intrin.h>

#include "function/inspect/inspection_frames_trial_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t ack = packet::tcp_ack;

// As of a scratch that was made for other patterns: whether there is anything in the frame nobody knows.
TEST_F(InspectionTest, ASearchThatIsRefusedIsAnOverload) {
  for (const bool drop : {false, true}) {
    InspectionSettings settings;
    settings.drop_on_overload = drop;
    use("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n", settings);
    auto search = std::make_unique<InspectionSearch>(rules_);
    const auto none = match::CpuMatcher::create({});
    ASSERT_TRUE(none);
    search->matching[static_cast<std::size_t>(match::Buffer::payload)] =
        std::make_unique<match::CpuMatcher::Scratch>(**none);
    inspection_->exchange(std::move(search));
    EXPECT_EQ(udp("an evil name").drop, drop);
    EXPECT_THAT(alerts(), IsEmpty());
    EXPECT_EQ(inspection_->counters().refused, 1U);
    EXPECT_EQ(inspection_->counters().overloaded, 1U);
  }
}

TEST_F(InspectionTest, WhatTheBudgetLeavesIsCountedAndThePolicyDecides) {
  std::string rules;
  for (int i = 1; i <= 20; ++i) {
    rules += "drop udp any any -> any any (content:\"x\"; content:\"y\"; sid:" + std::to_string(i) + ";)\n";
  }
  for (const bool drop : {false, true}) {
    InspectionSettings settings;
    settings.budget = 8;
    settings.drop_on_overload = drop;
    use(rules, settings);
    const Judgement judgement = udp("x");
    EXPECT_TRUE(judgement.overload);
    EXPECT_EQ(judgement.drop, drop);
    EXPECT_EQ(inspection_->counters().confirmed, 8U);
    EXPECT_EQ(inspection_->counters().left, 12U);
    EXPECT_EQ(inspection_->counters().overloaded, 1U);
    EXPECT_EQ(drops_, std::vector<DropReason>(drop ? 1 : 0, DropReason::budget));
    EXPECT_EQ(unseen_, drop ? 0U : 1U);
    udp("nothing");
    EXPECT_EQ(std::exchange(unseen_, 0), drop ? 0U : 1U) << "looked at to the end";
  }
}

TEST_F(InspectionTest, StepsThatAreLongAreCountedAndOthersAreNot) {
  constexpr std::uint64_t second = 10'000'000'000;  // more than that, by any clock
  for (const bool is_long : {false, true}) {
    use("alert udp any any -> any any (content:\"evil\"; content:\"x\"; sid:1;)\n");
    inspection_->begin(second);
    inspection_->set_long_from(is_long ? 1 : second);
    udp("evil x");
    EXPECT_EQ(inspection_->long_steps().times, is_long ? 1U : 0U);
    EXPECT_EQ(inspection_->long_steps().ticks > 0, is_long);
  }
}

// A flow's later packets are not tried with rules of addresses, once all of these have been.
TEST_F(InspectionTest, WhatIsLeftOfRulesOfAddressesIsTriedWithTheNextPacket) {
  for (const bool all : {false, true}) {
    InspectionSettings settings;
    settings.budget = all ? 2 : 1;
    use("alert ip any any -> 10.0.0.2 any (sid:1;)\nalert ip any any -> 10.0.0.2 any (sid:2;)\n", settings);
    EXPECT_EQ(udp("a").overload, !all);
    EXPECT_EQ(alerts().size(), settings.budget);
    EXPECT_EQ(udp("b").overload, !all);
    EXPECT_EQ(alerts().size(), all ? 0U : 1U);
  }
}

// Of a rule that alerts nobody would have been stopped: neither the frame, nor the rest of its flow.
TEST_F(InspectionTest, WhatIsLeftOfRulesThatOnlyAlertDropsNothing) {
  const std::string alert = "alert tcp any any -> any 80 (content:\"evil\"; content:\"x\"; sid:1;)\n";
  const std::string drop = "drop tcp any any -> any 80 (content:\"evil\"; content:\"x\"; sid:2;)\n";
  struct Case {
    std::string rules;
    std::uint32_t budget;
    bool drops;
  };
  for (const Case& one : {Case{alert, 0, false}, {alert + drop, 1, false}, {alert + drop, 0, true}, {drop, 0, true}}) {
    SCOPED_TRACE(one.rules + std::to_string(one.budget));
    InspectionSettings settings;
    settings.budget = one.budget;
    settings.drop_on_overload = true;
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    use(one.rules, settings);
    handshake();
    const Judgement judgement = segment(true, ack, "evil");
    EXPECT_TRUE(judgement.overload);
    EXPECT_EQ(judgement.undecided, one.drops);
    EXPECT_EQ(judgement.drop, one.drops);
    EXPECT_EQ(std::exchange(unseen_, 0), one.drops ? 0U : 1U);
    EXPECT_EQ(segment(false, ack, "goes on").drop, one.drops);
    EXPECT_EQ(inspection_->counters().left, 1U + (one.rules == alert + drop && one.drops ? 1U : 0U));
  }
}

// Without the share of each frame the dear one takes twice the time that there is for all. A pause of this thread is
// charged like anything else, so not every round shows it. (How frames share what there is: confirm_time_test.cc.)
TEST_F(InspectionTest, ADearFrameDoesNotTakeTheTimeOfThoseBehindIt) {
  std::string rules = "drop udp any any -> any any (content:\"evil\"; sid:1;)\n", dear = "evil ";
  for (int i = 1000; i < 4000; ++i) {
    const std::string number = std::to_string(i);
    rules += "drop udp any any -> any any (content:\"dear" + number + "\"; pcre:\"/(a+)+(b+)+" + number +
             "$/\"; sid:" + number + ";)\n";
    dear += "dear" + number;
  }
  dear += std::string(40, 'a');
  InspectionSettings settings;
  settings.budget = 10'000;
  settings.drop_on_overload = true;
  use(rules, settings);
  std::uint64_t least = match::Detector::unlimited;
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t began = __rdtsc();
    udp(dear);
    least = std::min<std::uint64_t>(least, __rdtsc() - began);
  }
  EXPECT_EQ(inspection_->counters().confirmed, 3 * 3001U);
  alerts();

  constexpr std::uint32_t frames = 64;
  const auto shares = [&] {
    bool as_meant = true;
    inspection_->begin(least / 2, frames);
    for (std::uint32_t to_come = frames; to_come != 0; --to_come) {
      inspection_->next(to_come);
      const bool is_dear = to_come % 16 == 0;
      const Judgement judgement = udp(is_dear ? dear : "an evil name");
      as_meant &= judgement.overload == is_dear && judgement.undecided == is_dear && alerts().size() == 1;
    }
    return as_meant;
  };
  bool ever = false;
  for (int round = 0; round < 10 && !ever; ++round) ever = shares();
  EXPECT_TRUE(ever);
}

TEST_F(InspectionTest, APayloadOfTooManyKeysIsSearchedAsLongAsThereIsTime) {
  use("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n");
  const Bytes bytes = PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(4000, 53).payload({'e', 'v', 'i', 'l'}).build();
  const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const KeyHits many{rules_->generation(), nullptr, match::max_hits + 1};
  inspection_->begin(1'000'000'000);
  EXPECT_FALSE(inspection_->frame(frame, now_ += 1000, many).overload);
  EXPECT_THAT(alerts(), ElementsAre(1));
  inspection_->begin(0);
  const std::uint64_t searched = inspection_->counters().searched;
  EXPECT_TRUE(inspection_->frame(frame, now_ += 1000, many).overload);
  EXPECT_THAT(alerts(), IsEmpty());
  EXPECT_EQ(inspection_->counters().searched, searched);
  EXPECT_EQ(inspection_->counters().left, 1U);
  EXPECT_EQ(inspection_->counters().many_keys, 2U);
  EXPECT_EQ(inspection_->counters().by_device, 2U);
  inspection_->frame(frame, now_ += 1000, {rules_->generation(), nullptr, 0});
  inspection_->frame(frame, now_ += 1000, {rules_->generation() + 1, nullptr, match::max_hits + 1});
  inspection_->frame(frame, now_ += 1000);
  EXPECT_EQ(inspection_->counters().many_keys, 2U) << "of other rules";
  EXPECT_EQ(inspection_->counters().by_device, 3U) << "nobody has searched by these rules but a core";
}

TEST_F(InspectionTest, WhatWasLeftOfAStreamDoesNotPassWhenItIsSentAgain) {
  for (const char* const rule : {"drop tcp any any -> any 80 (content:\"evil\"; sid:1;)\n",
                                 "drop http any any -> any 80 (http.uri; content:\"evil\"; sid:1;)\n"}) {
    for (const bool drop : {false, true}) {
      InspectionSettings settings;
      settings.drop_on_overload = drop;
      sequence_[0] = 1000;
      sequence_[1] = 5000;
      drops_.clear();
      use(rule, settings);
      handshake();
      const std::string request = "GET /evil HTTP/1.0\r\n";
      inspection_->begin(0);
      EXPECT_EQ(segment(true, ack, request).drop, drop) << rule;
      inspection_->begin(match::Detector::unlimited);
      sequence_[0] -= static_cast<std::uint32_t>(request.size());
      EXPECT_EQ(segment(true, ack, request).drop, drop) << rule;
      EXPECT_EQ(segment(false, ack).drop, drop) << rule;
      const std::vector<DropReason> both{DropReason::budget, DropReason::flow_drop, DropReason::flow_drop};
      EXPECT_EQ(drops_, drop ? both : std::vector<DropReason>()) << rule;
    }
  }
}

TEST_F(InspectionTest, NothingIsConfirmedOnceTheTimeIsOver) {
  InspectionSettings settings;
  settings.drop_on_overload = true;
  use("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n", settings);
  inspection_->begin(0);
  EXPECT_TRUE(udp("an evil name").overload);
  EXPECT_THAT(alerts(), IsEmpty());
  EXPECT_FALSE(udp("a good name").overload);
  EXPECT_EQ(inspection_->counters().left, 1U);
  inspection_->begin(match::Detector::unlimited);
  EXPECT_FALSE(udp("an evil name").overload);
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// Else an inspector that is short of time would leave, or drop, what the rule's header excludes.
TEST_F(InspectionTest, ARuleWithoutAPatternHasNoPrefilterMatchesButWhatItsHeaderAdmits) {
  InspectionSettings settings;
  settings.drop_on_overload = true;
  use("pass ip 192.0.2.10 any -> any any (sid:1;)\n"
      "drop ip any any -> any any (fragbits:M; sid:2;)\n"
      "drop ip any any -> any any (ip_proto:47; sid:3;)\n"
      "drop ip any any -> any any (ttl:1; sid:4;)\n",
      settings);
  inspection_->begin(0);
  EXPECT_FALSE(udp("a name").overload);
  segment(true, ack, "one two");
  EXPECT_FALSE(inspection_->last().overload);
  EXPECT_EQ(inspection_->counters().left, 0U);
  const auto from_there = PacketBuilder().ipv4("192.0.2.10", "10.1.0.1").udp(4000, 53).payload(4);
  EXPECT_TRUE(feed(from_there).overload) << "the first is one then";
}

}  // namespace
}  // namespace sluice::function
