#include "ipsec/path_mtus.h"

#include <gtest/gtest.h>

#include "ipsec/databases.h"
#include "ipsec/ipsec_trial_test.h"

namespace sluice::ipsec {
namespace {

using namespace std::chrono_literals;

const PathMtus::Time start = PathMtus::Time() + 1h;
PathMtus::Way way(const char* destination = "192.0.2.2") {
  return {test::ip(destination[0] == '2' ? "2001:db8::1" : "192.0.2.1"), test::ip(destination)};
}

TEST(PathMtus, SinkAndEnd) {
  PathMtus mtus;
  EXPECT_EQ(mtus.of(way()), 0);
  EXPECT_TRUE(mtus.learn(way(), 1400, start));
  EXPECT_FALSE(mtus.learn(way(), 1450, start)) << "it only sinks";
  EXPECT_TRUE(mtus.learn(way(), 1300, start + 10s));
  EXPECT_EQ(mtus.of(way()), 1300);
  EXPECT_EQ(mtus.of(way("192.0.2.3")), 0);
  PathMtus::Way over;
  EXPECT_FALSE(mtus.expire(start + 600s, over)) << "the newer one counts";
  EXPECT_TRUE(mtus.expire(start + 610s, over));
  EXPECT_EQ(over, way());
  EXPECT_EQ(mtus.of(way()), 0);
}

TEST(PathMtus, AreRenewedByFurtherErrors) {
  PathMtus mtus;
  mtus.learn(way(), 1400, start);
  EXPECT_FALSE(mtus.learn(way(), 1400, start + 300s));
  PathMtus::Way over;
  EXPECT_FALSE(mtus.expire(start + 899s, over));
  EXPECT_TRUE(mtus.expire(start + 900s, over));
}

TEST(PathMtus, AreNotBelowWhatTheRfcsAllow) {
  PathMtus mtus;
  mtus.learn(way(), 100, start);
  mtus.learn(way("192.0.2.3"), 0, start);
  mtus.learn(way("2001:db8::2"), 100, start);
  EXPECT_EQ(mtus.of(way()), 576);
  EXPECT_EQ(mtus.of(way("192.0.2.3")), 576);
  EXPECT_EQ(mtus.of(way("2001:db8::2")), 1280);
}

class PathMtusOfSas : public testing::Test {
 protected:
  void SetUp() override {
    databases_.tick(start);
    ASSERT_TRUE(databases_.add(test::sa(Direction::out, "192.0.2.1", "192.0.2.2", 0x1001)));
    ASSERT_TRUE(databases_.add(test::sa(Direction::out, "192.0.2.1", "192.0.2.2", 0x1002)));
    ASSERT_TRUE(databases_.add(test::sa(Direction::out, "192.0.2.1", "192.0.2.3", 0x1003)));
    ASSERT_TRUE(databases_.add(test::sa(Direction::out, "192.0.2.9", "192.0.2.2", 0x1004)));
    SaSettings old = test::sa(Direction::out, "192.0.2.1", "192.0.2.4", 0x1005);
    old.sequence = 5'000'000;
    old.esn = true;
    ASSERT_TRUE(databases_.add(old));
  }
  static TooBig error(std::uint32_t spi = 0x1001, std::uint32_t sequence = 1, const char* destination = "192.0.2.2") {
    TooBig made{.family = 4, .spi = spi, .sequence = sequence, .mtu = 1300, .length = 1500};
    made.source = test::ip("192.0.2.1").bytes;
    made.destination = test::ip(destination).bytes;
    return made;
  }
  void send(std::uint32_t spi, std::uint32_t count) {
    Policy policy = test::protecting(Direction::out, test::selector("10.0.0.0/8", "10.0.0.0/8"), 1,
                                     test::tunnel_template("192.0.2.1", "192.0.2.2"));
    policy.templates[0].spi = spi;
    ASSERT_TRUE(databases_.add(policy, true));
    const View* const view = databases_.pin(0);
    const PacketKey key = packet_key({.source = test::ip("10.0.0.1"), .destination = test::ip("10.0.0.2")});
    const PolicyEntry* found = nullptr;
    view->find_policies(Direction::out, {&key, 1}, &found, nullptr);
    ASSERT_NE(found, nullptr);
    Sa* const sa = view->outbound(*found, 0, key);
    ASSERT_NE(sa, nullptr);
    EXPECT_EQ(view->take_numbers(*sa, count).count, count);
    databases_.unpin(0);
  }
  void note(const TooBig& error) {
    databases_.pin(0)->note_too_big(error);
    databases_.unpin(0);
    databases_.tick(now_);
  }
  std::uint16_t mtu(std::uint32_t spi, const char* destination = "192.0.2.2") {
    return databases_.sa({test::ip(destination), spi, Protocol::esp})->path_mtu;
  }

  crypto::KeyTable keys_ = crypto::KeyTable::make(16, true).value();
  Databases databases_{keys_, {.sas = 16, .policies = 16, .lanes = 1, .readers = 1}, start};
  Databases::Time now_ = start;
};

TEST_F(PathMtusOfSas, AreOfAllThatTakeTheWay) {
  send(0x1001, 1);
  note(error());
  EXPECT_EQ(databases_.path_mtus_learnt(), 1U);
  EXPECT_EQ(mtu(0x1001), 1300);
  EXPECT_EQ(mtu(0x1002), 1300);
  EXPECT_EQ(mtu(0x1003, "192.0.2.3"), 0) << "to another destination";
  EXPECT_EQ(mtu(0x1004), 0) << "from another source";
  ASSERT_TRUE(databases_.add(test::sa(Direction::out, "192.0.2.1", "192.0.2.2", 0x1009)));
  EXPECT_EQ(mtu(0x1009), 1300) << "a rekey";
  now_ += PathMtus::kept;
  databases_.tick(now_);
  EXPECT_EQ(mtu(0x1001), 0);
  EXPECT_EQ(mtu(0x1009), 0);
}

TEST_F(PathMtusOfSas, AreLearntFromWhatWasSentAlone) {
  note(error());
  EXPECT_EQ(mtu(0x1001), 0) << "nothing was sent";
  send(0x1001, 10);
  note(error(0x1001, 11));
  note(error(0x1001, 0));
  note(error(0x7777));
  TooBig other = error();
  other.in_udp = true;
  note(other);
  other = error();
  other.protocol = Protocol::ah;
  note(other);
  other = error();
  other.source = test::ip("192.0.2.8").bytes;
  note(other);
  other = error();
  other.length = other.mtu;
  note(other);
  EXPECT_EQ(mtu(0x1001), 0);
  note(error(0x1005, 5'000'000 - Databases::recent, "192.0.2.4"));
  EXPECT_EQ(mtu(0x1005, "192.0.2.4"), 0) << "long ago";
  note(error(0x1005, 5'000'001 - Databases::recent, "192.0.2.4"));
  EXPECT_EQ(mtu(0x1005, "192.0.2.4"), 1300);
  note(error(0x1001, 10));
  EXPECT_EQ(mtu(0x1001), 1300);
}

}  // namespace
}  // namespace sluice::ipsec
