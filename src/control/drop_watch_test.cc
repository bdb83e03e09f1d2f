#include "control/drop_watch.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

packet::Reason named(std::string_view name) {
  for (unsigned reason = 1; reason < packet::reason_count(); ++reason) {
    if (packet::reason_name(static_cast<packet::Reason>(reason)) == name) return static_cast<packet::Reason>(reason);
  }
  ADD_FAILURE() << "no reason is called " << name;
  return packet::no_reason;
}

// One port; each call is a second.
class DropWatchTest : public testing::Test {
 protected:
  DropWatchTest() : port_{"lan", 0, std::vector<std::uint64_t>(packet::max_reasons)} { watch_.look({port_}); }
  std::string second(std::uint64_t received, std::uint64_t dropped, std::string_view reason = "other_host") {
    port_.received += received;
    port_.drops[named(reason)] += dropped;
    watch_.look({port_});
    const packet::Reason found = watch_.reasons().at(0);
    return found == packet::no_reason ? "" : std::string(packet::reason_name(found));
  }

  DropWatch watch_;
  DropWatch::Port port_;
};

TEST_F(DropWatchTest, APingASecondThatIsLostIsNoticed) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(second(1, 1), "") << i;
  EXPECT_EQ(second(1, 1), "other_host");
  EXPECT_EQ(second(1, 1), "other_host");
  EXPECT_EQ(second(20, 0), "") << "it is no longer so";
}

// Sixteen ports, each with fewer frames than say anything.
TEST(DropWatchOfAll, PortsOfFewFramesEachAreNoticedTogether) {
  DropWatch watch;
  std::vector<DropWatch::Port> ports(16, {"lan", 0, std::vector<std::uint64_t>(packet::max_reasons)});
  watch.look(ports);
  for (int i = 0; i < 5; ++i) {
    ports[static_cast<std::size_t>(i)].received += 1;
    ports[static_cast<std::size_t>(i)].drops[named("other_host")] += 1;
    watch.look(ports);
  }
  EXPECT_EQ(watch.together(), named("other_host"));
  EXPECT_EQ(watch.reasons(), std::vector<packet::Reason>(16, packet::no_reason));
  ports[0].received += 20;
  watch.look(ports);
  EXPECT_EQ(watch.together(), packet::no_reason);
}

TEST(DropWatchOfAll, APortThatShowsItIsEnough) {
  DropWatch watch;
  DropWatch::Port port{"lan", 0, std::vector<std::uint64_t>(packet::max_reasons)};
  watch.look({port});
  for (int i = 0; i < 6; ++i) {
    port.received += 10;
    port.drops[named("other_host")] += 10;
    watch.look({port});
  }
  EXPECT_EQ(watch.reasons().at(0), named("other_host"));
  EXPECT_EQ(watch.together(), packet::no_reason);
}

TEST_F(DropWatchTest, ItEndsWithTheTraffic) {
  for (int i = 0; i < 5; ++i) second(100, 100);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(second(0, 0), "other_host") << i;
  EXPECT_EQ(second(0, 0), "");
}

TEST_F(DropWatchTest, ABurstIsNot) {
  EXPECT_EQ(second(1000, 1000), "");
  EXPECT_EQ(second(1, 0), "");
  EXPECT_EQ(second(1, 0), "");
  EXPECT_EQ(second(1, 0), "");
}

TEST_F(DropWatchTest, WhatIsDroppedForSeveralReasonsOrByHalfIsNot) {
  for (int i = 0; i < 10; ++i) {
    second(0, 50, "bad_checksum");
    EXPECT_EQ(second(100, 50), "") << i;
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(second(100, 70), "") << i;
}

TEST_F(DropWatchTest, WhatIsDroppedOnPurposeIsNot) {
  for (const char* reason : {"acl_denied", "acl_rejected", "inspect_dropped", "blackholed", "passive"}) {
    for (int i = 0; i < 6; ++i) EXPECT_EQ(second(100, 100, reason), "") << reason;
  }
}

TEST(DropAilment, NamesThePortAndTheReason) {
  PortSnapshot port;
  port.name = "lan";
  EXPECT_EQ(drop_ailment(port), "");
  port.drops_nearly_all_as = "other_host";
  EXPECT_EQ(drop_ailment(port), "port lan: drops nearly everything that it receives as other_host");
}

}  // namespace
}  // namespace sluice::control
