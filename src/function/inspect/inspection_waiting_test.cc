// What has waited in a stream, and is looked at because a frame releases it: by whose time, and that nothing of it is
// lost that there is time for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/inspect/inspection_trial_test.h"
#include "function/inspect/with_policy_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, rst = packet::tcp_rst, fin = packet::tcp_fin;
constexpr const char* evil_rule = "alert tcp any any -> any 80 (content:\"evil\"; sid:1;)\n";
constexpr std::size_t count = 20, size = 1000;  // of the segments that wait

class InspectionWaitingTest : public testing::TestWithParam<bool>, public AlertSink {
 protected:
  void use(const std::string& text, bool drops = true, std::uint32_t streams = 64) {
    rules_ = test::rules_of(test::with_policy(text, drops));
    ASSERT_NE(rules_, nullptr);
    InspectionSettings settings = test::small_settings();
    settings.drop_on_overload = drops;
    settings.conversations.extras = streams;
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(rules_), settings, *this);
    sids_.clear();
  }
  void alert(const Alert& alert) override { sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid); }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }
  const InspectionCounters& counters() const { return inspection_->counters(); }

  Judgement feed(const packet::PacketBuilder& builder) {
    const Bytes bytes = builder.build();
    return test::inspect(*inspection_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, now_ += 1000,
                         GetParam());
  }
  void handshake(std::uint16_t port = 4000) {
    feed(test::segment_of(true, syn, 1000, 0, "", port));
    feed(test::segment_of(false, syn | ack, 5000, 1001, "", port));
    feed(test::segment_of(true, ack, 1001, 5001, "", port));
  }
  // To the server, so many bytes behind the stream's beginning.
  Judgement at(std::size_t place, const std::string& text, std::uint16_t port = 4000, std::uint8_t flags = ack) {
    return feed(test::segment_of(true, flags, 1001 + static_cast<std::uint32_t>(place), 5001, text, port));
  }
  // Wait for the stream's first bytes.
  void let_wait(char with, const std::string& word, std::uint16_t port = 4000, std::size_t from = 10) {
    std::string text(size, with);
    text.replace(100, word.size(), word);
    for (std::size_t i = 0; i < count; ++i) at(from + i * size, text, port);
  }
  std::uint64_t searched_since(std::uint64_t before) const { return counters().searched - before; }

  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
  std::uint64_t now_ = 0;                   // microseconds
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

// It has been looked at when it came.
TEST_P(InspectionWaitingTest, OfWhatHoldsNoPatternOnlyTheSeamsAreSearchedWhenItIsReleased) {
  use(evil_rule);
  handshake();
  let_wait('.', "harmless");
  const std::uint64_t before = counters().searched;
  EXPECT_FALSE(at(0, "0123456789").overload);
  EXPECT_LE(searched_since(before), GetParam() ? 0U : 10 + count * 2 * 4);
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_P(InspectionWaitingTest, WhatLiesAcrossSegmentsThatWaitedIsFound) {
  for (std::size_t cut = 1; cut < 4; ++cut) {
    SCOPED_TRACE(cut);
    const std::string word = "evil";
    use(evil_rule);
    handshake();
    at(10, "a stream " + word.substr(0, cut));
    at(10 + 9 + cut, word.substr(cut) + " of bytes");
    EXPECT_THAT(alerts(), IsEmpty());
    at(0, "0123456789");
    EXPECT_THAT(alerts(), ElementsAre(1));

    use(evil_rule);
    handshake();
    at(cut, word.substr(cut) + " and other bytes");
    at(0, word.substr(0, cut));
    EXPECT_THAT(alerts(), ElementsAre(1)) << "with the bytes that it waited for";
  }
}

TEST_P(InspectionWaitingTest, WhatLiesInASegmentThatWaitedIsFoundWhoeverCameFirst) {
  use(evil_rule);
  handshake();
  at(20, "an evil thing");
  at(20, "a harmless on");  // other bytes there: the first ones count
  at(10, "0123456789");
  at(0, "0123456789");
  EXPECT_THAT(alerts(), testing::Contains(1));
}

// What the old ones did not look for.
TEST_P(InspectionWaitingTest, RulesThatComeWhileItWaitsFindWhatIsInIt) {
  use("alert tcp any any -> any 80 (content:\"other\"; sid:2;)\n");
  handshake();
  at(10, "an evil thing");
  rules_ = test::rules_of(evil_rule, rules_.get());
  inspection_->exchange(std::make_unique<InspectionSearch>(rules_));
  at(0, "0123456789");
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// Each segment holds a pattern, so it has to be searched again for what is around it.
TEST_P(InspectionWaitingTest, AFrameThatReleasesMuchHasItsTime) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops ? "drop" : "pass");
    use(evil_rule, drops);
    handshake();
    let_wait('.', "evil");
    std::uint64_t before = counters().searched;
    inspection_->begin(0);
    const Judgement without_time = at(0, "0123456789");
    EXPECT_LE(searched_since(before), 10U) << "as much as it brings itself";
    EXPECT_TRUE(without_time.overload);
    EXPECT_EQ(without_time.drop, drops);
    EXPECT_EQ(counters().left, drops ? 1U : count) << "a flow that is dropped is looked at no further";
    EXPECT_EQ(counters().overloaded, 1U);
    EXPECT_THAT(alerts(), IsEmpty());
    inspection_->begin(match::Detector::unlimited);
    EXPECT_EQ(at(10 + count * size, "goes on").drop, drops) << "its stream has what was left";

    use(evil_rule, drops);
    handshake();
    let_wait('.', "evil");
    before = counters().searched;
    inspection_->begin(std::uint64_t{1} << 40);
    EXPECT_FALSE(at(0, "0123456789").overload);
    EXPECT_GE(searched_since(before), count * size);
    EXPECT_NE(inspection_->spent(), 0U);
    EXPECT_EQ(alerts().size(), count);
  }
}

// As the frame is as long, its search is no part of the batch's time.
TEST_P(InspectionWaitingTest, AsMuchAsAFrameBringsIsSearchedWhateverTimeThereIs) {
  use(evil_rule);
  handshake();
  at(1000, "an evil thing");
  inspection_->begin(0);
  const Judgement judgement = at(0, std::string(1000, '.'));
  EXPECT_EQ(inspection_->spent(), 0U);
  EXPECT_TRUE(judgement.overload) << "its prefilter match was left";
  EXPECT_EQ(counters().left, 1U);
  EXPECT_EQ(counters().searched >= 1000, !GetParam());
}

TEST_P(InspectionWaitingTest, AResetThatReleasesMuchHasItsTime) {
  use(evil_rule);
  handshake();
  let_wait('.', "evil");
  const std::uint64_t before = counters().searched;
  inspection_->begin(0);
  EXPECT_TRUE(at(0, "", 4000, rst).overload);
  EXPECT_EQ(searched_since(before), 0U);
  EXPECT_EQ(counters().left, 1U);
}

// Handing it over takes its time, too: ordinary losses have it, an attack does not.
TEST_P(InspectionWaitingTest, OfManyFramesThatReleaseMuchOnlyTheFirstHasMoreThanItsTime) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops ? "drop" : "pass");
    use(evil_rule, drops);
    const std::string hole(500, '.');  // more than the seams, which so cost nothing
    for (std::uint16_t port = 4000; port < 4003; ++port) {
      handshake(port);
      let_wait('.', "harmless", port, hole.size());
    }
    inspection_->begin(0, 3);
    EXPECT_FALSE(at(0, hole, 4000).overload);
    const Judgement second = at(0, hole, 4001);
    EXPECT_TRUE(second.overload);
    EXPECT_EQ(second.drop, drops);
    EXPECT_TRUE(at(0, hole, 4002).overload);
    EXPECT_EQ(counters().releases_left, 2U);
    EXPECT_EQ(counters().overloaded, 2U);
    EXPECT_EQ(inspection_->conversations().stream_counters().thrown_away, drops ? 0U : 2 * count);
    // Where they were dropped, they are sent again, and nothing has been lost.
    inspection_->begin(0, 1);
    EXPECT_FALSE(at(0, hole, 4001).drop);
    inspection_->begin(std::uint64_t{1} << 40, 1);
    EXPECT_FALSE(at(0, hole, 4002).drop);
    at(hole.size() + count * size, "an evil thing", 4001);
    at(hole.size() + count * size, "an evil thing", 4002);
    EXPECT_EQ(alerts().size(), 2U) << "the streams go on";
  }
}

TEST_P(InspectionWaitingTest, InABatchThatIsLateNoFrameReleasesMoreThanThereIsTimeFor) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops ? "drop" : "pass");
    use(evil_rule, drops);
    handshake();
    let_wait('.', "harmless");
    inspection_->begin(0, 1);
    inspection_->set_looks_until(0);
    const Judgement judgement = at(0, "0123456789");
    EXPECT_EQ(judgement.drop, drops);
    EXPECT_EQ(counters().releases_left, 1U);
  }
}

TEST_P(InspectionWaitingTest, WhatIsReleasedWithinTheTimeThereIsTakesOfIt) {
  use(evil_rule);
  handshake();
  let_wait('.', "harmless");
  inspection_->begin(std::uint64_t{1} << 40, 1);
  EXPECT_FALSE(at(0, "0123456789").overload);
  EXPECT_GE(inspection_->spent(), count * 1000);
}

// Nobody sends a RST again: what waits goes with it.
TEST_P(InspectionWaitingTest, OfManyResetsOnlyTheFirstReleasesWhatWaits) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops ? "drop" : "pass");
    use(evil_rule, drops);
    for (std::uint16_t port = 4000; port < 4003; ++port) {
      handshake(port);
      let_wait('.', "harmless", port);
    }
    inspection_->begin(0, 3);
    EXPECT_EQ(at(0, "", 4000, rst).overload, !GetParam()) << "to search the seams a core has no time";
    EXPECT_EQ(counters().releases_left, 0U);
    for (std::uint16_t port = 4001; port < 4003; ++port) {
      const Judgement judgement = at(0, "", port, rst);
      EXPECT_TRUE(judgement.overload);
      EXPECT_EQ(judgement.drop, drops);
    }
    EXPECT_EQ(counters().releases_left, 2U);
    EXPECT_EQ(inspection_->conversations().stream_counters().thrown_away, 2 * count);
  }
}

TEST_P(InspectionWaitingTest, OfFlowsThatExpireOnlyTheFirstHasMoreThanWhatIsSetAside) {
  use(evil_rule, true);
  for (std::uint16_t port = 4000; port < 4003; ++port) {
    handshake(port);
    let_wait('.', "harmless", port);
  }
  inspection_->begin(0);
  inspection_->conversations().table().sweep(now_ / 1000 + 10'000'000, 1024);
  EXPECT_EQ(counters().releases_left, 2U);
  EXPECT_EQ(counters().overloaded, 0U) << "no frame is";
  EXPECT_EQ(inspection_->conversations().stream_counters().thrown_away, 2 * count);
}

// A conversation that a rule of `pass` has let go is looked at no more: nothing is left of it.
TEST_P(InspectionWaitingTest, AFlowThatPassesIsNeverDroppedForWhatItReleases) {
  use("pass tcp any any -> any 80 (content:\"friend\"; sid:3;)\n" + std::string(evil_rule));
  for (std::uint16_t port = 4000; port < 4002; ++port) {
    handshake(port);
    at(0, "friend", port);
    for (std::size_t i = 0; i < count; ++i) at(10 + i * size, std::string(size, '.'), port);
  }
  inspection_->begin(0, 2);
  EXPECT_FALSE(at(6, "0123", 4000).drop);
  EXPECT_FALSE(at(6, "0123", 4001).drop);
  EXPECT_EQ(counters().releases_left, 0U);
}

// A closed flow that gives way to the frame's, and one that expires.
TEST_P(InspectionWaitingTest, WhatOtherFlowsReleaseHasTheTimeThatIsSetAside) {
  for (const bool limited : {false, true}) {
    for (const bool expires : {false, true}) {
      SCOPED_TRACE(std::string(limited ? "without time" : "with time") + (expires ? ", expires" : ", gives way"));
      use(evil_rule, true, 1);
      handshake();
      let_wait('.', "evil");
      at(10 + count * size, "", 4000, ack | fin);
      feed(test::segment_of(false, ack | fin, 5001, 1001));
      if (!expires) handshake(5000);
      const std::uint64_t before = counters().searched;
      inspection_->begin(limited ? 0 : std::uint64_t{1} << 40);
      if (expires) {
        inspection_->conversations().table().sweep(now_ / 1000 + 10'000'000, 1024);
      } else {
        const Judgement judgement = at(0, "hello", 5000);
        EXPECT_FALSE(judgement.overload);
        EXPECT_FALSE(judgement.drop);
      }
      EXPECT_EQ(searched_since(before) >= count * size, !limited);
      EXPECT_EQ(alerts().size(), limited ? 0U : count);
      EXPECT_EQ(counters().left, limited ? 1U : 0U);
      EXPECT_EQ(counters().overloaded, 0U) << "no frame is";
    }
  }
}

// That is left with its frame, whose batch is late, and nothing else.
TEST_P(InspectionWaitingTest, WhatADeviceFoundInAFrameIsNotWhatOtherFlowsHold) {
  use(evil_rule, false, 1);
  handshake();
  let_wait('.', "evil");
  at(10 + count * size, "", 4000, ack | fin);
  feed(test::segment_of(false, ack | fin, 5001, 1001));
  handshake(5000);
  inspection_->begin(match::Detector::unlimited);
  inspection_->set_looks_until(0);
  const Judgement judgement = at(0, "evil", 5000);
  EXPECT_EQ(judgement.overload, GetParam()) << "the core looks at its frames, late or not";
  EXPECT_EQ(alerts().size(), count + (GetParam() ? 0 : 1));
}

INSTANTIATE_TEST_SUITE_P(By, InspectionWaitingTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "device" : "core"; });

}  // namespace
}  // namespace sluice::function
