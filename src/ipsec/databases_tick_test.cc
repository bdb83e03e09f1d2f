// What happens by itself, as who is told of it sees it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ipsec/databases.h"
#include "ipsec/ipsec_trial_test.h"
#include "ipsec/sa_record.h"
#include "packet/headers.h"

namespace sluice::ipsec {
namespace {

using namespace std::chrono_literals;
using test::flow;
using test::sa;
using test::selector;

constexpr std::string_view here = "192.0.2.1", there = "198.51.100.7";

// Everything that is said, as one reads it.
struct Said final : Events {
  void acquire(const Acquire& acquire) override {
    acquires.push_back(acquire);
    all.push_back("acquire " + std::to_string(acquire.wanted.reqid) + " " + acquire.wanted.source.str() + " " +
                  acquire.wanted.destination.str());
  }
  void expired(const SaStatus& sa, bool hard) override {
    expired_sas.push_back(sa);
    all.push_back((hard ? "hard " : "soft ") + sa.settings.id.str());
  }
  void moved(const SaStatus& sa, const packet::IpAddress& source, std::uint16_t port) override {
    all.push_back("moved " + sa.settings.id.str() + " " + source.str() + " " + std::to_string(port));
  }
  std::vector<std::string> take() { return std::exchange(all, {}); }

  std::vector<std::string> all;
  std::vector<Acquire> acquires;
  std::vector<SaStatus> expired_sas;
};
using Words = std::vector<std::string>;

class DatabasesTickTest : public testing::Test {
 protected:
  DatabasesTickTest() { databases_.set_events(&said_); }
  ~DatabasesTickTest() override {
    databases_.unpin(0);
    databases_.set_events(nullptr);
  }

  // Goes on by so much, in the watcher's steps, and gives what was said.
  Words after(std::chrono::milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) databases_.tick(now_ += 100ms);
    return said_.take();
  }
  void add(const SaSettings& settings) {
    const auto added = databases_.add(settings);
    ASSERT_TRUE(added) << added.error().message;
  }
  void add(const Policy& policy) {
    const auto added = databases_.add(policy, false);
    ASSERT_TRUE(added) << added.error().message;
  }
  Sa* outbound_sa(const SaId& id) {
    // By a policy of its own, as a lane would.
    const Selector one = selector("203.0.113.0/24", "203.0.113.0/24");
    Template wanted = test::tunnel_template(here, there);
    wanted.spi = id.spi;
    EXPECT_TRUE(databases_.add(test::protecting(Direction::out, one, 0, wanted), true));
    return sa_of(flow("203.0.113.1", "203.0.113.2"));
  }
  // A packet of a lane: the SA that it leaves by, or null and an SA is wanted.
  Sa* sa_of(const FlowKey& flow) {
    const View& view = *databases_.pin(0);
    const PacketKey key = packet_key(flow);
    const PolicyEntry* policy = nullptr;
    view.find_policies(Direction::out, {&key, 1}, &policy, nullptr);
    if (policy == nullptr) return nullptr;
    Sa* const found = view.outbound(*policy, 0, key);
    if (found == nullptr) view.want(*policy, key);
    return found;
  }
  bool send(Sa& sa, std::uint32_t packets = 1) { return databases_.pin(0)->count(sa, 0, packets, 100 * packets); }
  SaState state_of(const SaId& id) { return databases_.sa(id)->state; }

  crypto::KeyTable keys_ = crypto::KeyTable::make(64, true).value();
  Databases::Time now_{1000s};
  Databases databases_{keys_, {.sas = 16, .policies = 16, .lanes = 1, .readers = 1}, now_};
  Said said_;
};

TEST_F(DatabasesTickTest, AcquiresOnceUntilThereIsAnSa) {
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10,
                       test::tunnel_template(here, there, 5)));
  for (std::uint16_t port = 1; port < 100; ++port) sa_of(flow("10.0.0.1", "10.1.0.1", 17, port, 53));
  EXPECT_EQ(after(100ms), (Words{"acquire 5 192.0.2.1 198.51.100.7"}));
  EXPECT_EQ(said_.acquires[0].packet, flow("10.0.0.1", "10.1.0.1", 17, 1, 53));
  EXPECT_EQ(said_.acquires[0].policy.selector, selector("10.0.0.0/8", "10.1.0.0/16"));
  sa_of(flow("10.0.0.1", "10.1.0.1"));
  EXPECT_EQ(after(10s), Words{});
  add(sa(Direction::out, here, there, 0x1000, 5));
  EXPECT_NE(sa_of(flow("10.0.0.1", "10.1.0.1")), nullptr);
  EXPECT_EQ(after(1s), Words{});
  ASSERT_TRUE(databases_.remove({test::ip(there), 0x1000, Protocol::esp}));
  EXPECT_EQ(sa_of(flow("10.0.0.1", "10.1.0.1")), nullptr);
  EXPECT_EQ(after(100ms), (Words{"acquire 5 192.0.2.1 198.51.100.7"})) << "it has gone, and another one is wanted";
  EXPECT_EQ(said_.acquires[1].sequence, said_.acquires[0].sequence + 1);
}

TEST_F(DatabasesTickTest, AcquiresAgainAfterHalfAMinute) {
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10,
                       test::tunnel_template(here, there, 5)));
  sa_of(flow("10.0.0.1", "10.1.0.1"));
  EXPECT_EQ(after(100ms).size(), 1U);
  sa_of(flow("10.0.0.1", "10.1.0.1"));
  EXPECT_EQ(after(29s), Words{});
  EXPECT_EQ(after(2s), Words{}) << "nobody has sent since";
  sa_of(flow("10.0.0.1", "10.1.0.1"));
  EXPECT_EQ(after(100ms).size(), 1U);
}

TEST_F(DatabasesTickTest, AcquiresForEachPairOfHostsInTransportMode) {
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10,
                       {.protocol = Protocol::esp, .mode = Mode::transport, .reqid = 5}));
  for (int i = 0; i < 3; ++i) {
    sa_of(flow("10.0.0.1", "10.1.0.1"));
    sa_of(flow("10.0.0.2", "10.1.0.1"));
  }
  EXPECT_EQ(after(100ms), (Words{"acquire 5 10.0.0.1 10.1.0.1", "acquire 5 10.0.0.2 10.1.0.1"}));
  sa_of(flow("10.0.0.1", "10.1.0.1"));
  EXPECT_EQ(after(1s), Words{});
}

TEST_F(DatabasesTickTest, DoesNotAcquireForAPolicyThatHasGone) {
  const Selector one = selector("10.0.0.0/8", "10.1.0.0/16");
  add(test::protecting(Direction::out, one, 10, test::tunnel_template(here, there, 5)));
  sa_of(flow("10.0.0.1", "10.1.0.1"));
  ASSERT_TRUE(databases_.remove_policy(Direction::out, one));
  EXPECT_EQ(after(100ms), Words{});
}

TEST_F(DatabasesTickTest, ExpiresSoftAndThenHardByTime) {
  SaSettings settings = sa(Direction::in, there, here, 0x1000);
  settings.lifetime.seconds = {.soft = 10, .hard = 20};
  add(settings);
  EXPECT_EQ(after(9900ms), Words{});
  EXPECT_EQ(after(200ms), (Words{"soft esp 0x00001000 to 192.0.2.1"}));
  EXPECT_EQ(state_of(settings.id), SaState::dying);
  EXPECT_EQ(after(9800ms), Words{});
  EXPECT_EQ(after(200ms), (Words{"hard esp 0x00001000 to 192.0.2.1"}));
  EXPECT_EQ(state_of(settings.id), SaState::dead);
  EXPECT_EQ(after(60s), Words{});
}

TEST_F(DatabasesTickTest, ExpiresByTimeSinceItsFirstUse) {
  SaSettings settings = sa(Direction::out, here, there, 0x1000);
  settings.lifetime.use_seconds = {.soft = 10, .hard = 20};
  add(settings);
  Sa* const found = outbound_sa(settings.id);
  EXPECT_EQ(after(100s), Words{});
  EXPECT_TRUE(send(*found));
  EXPECT_EQ(after(9s), Words{});
  EXPECT_TRUE(send(*found));
  EXPECT_EQ(after(2s), (Words{"soft esp 0x00001000 to 198.51.100.7"}));
  EXPECT_EQ(after(11s), (Words{"hard esp 0x00001000 to 198.51.100.7"}));
  EXPECT_FALSE(send(*found));
  const SaCounters counters = databases_.sa(settings.id)->counters;
  EXPECT_EQ(counters.first_used_at - counters.added_at, 100U);
  EXPECT_EQ(counters.last_used_at - counters.added_at, 109U);
}

TEST_F(DatabasesTickTest, ExpiresSoftAndThenHardByPackets) {
  SaSettings settings = sa(Direction::out, here, there, 0x1000);
  settings.lifetime.packets = {.soft = 100, .hard = 200};
  add(settings);
  Sa* const found = outbound_sa(settings.id);
  for (int i = 0; i < 80; ++i) ASSERT_TRUE(send(*found));
  EXPECT_EQ(after(100ms), Words{});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(send(*found));
  EXPECT_EQ(after(100ms), (Words{"soft esp 0x00001000 to 198.51.100.7"}));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(send(*found));
  EXPECT_EQ(after(100ms), Words{});
  EXPECT_FALSE(send(*found));
  EXPECT_EQ(after(100ms), (Words{"hard esp 0x00001000 to 198.51.100.7"}));
  EXPECT_EQ(said_.expired_sas.back().counters.packets, 200U);
  EXPECT_EQ(said_.expired_sas.back().state, SaState::dead);
}

TEST_F(DatabasesTickTest, EndsWithItsSequenceNumbers) {
  SaSettings settings = sa(Direction::out, here, there, 0x1000);
  settings.sequence = late_sequence - 10;
  add(settings);
  Sa* const found = outbound_sa(settings.id);
  const View& view = *databases_.pin(0);
  EXPECT_EQ(view.take_numbers(*found, 8).count, 8U);
  EXPECT_EQ(after(100ms), Words{});
  EXPECT_EQ(view.take_numbers(*found, 8).count, 8U);
  EXPECT_EQ(after(100ms), (Words{"soft esp 0x00001000 to 198.51.100.7"}));

  SaSettings last = sa(Direction::out, here, there, 0x1001);
  last.sequence = last_short_sequence - 10;
  add(last);
  Sa* const at_the_end = outbound_sa(last.id);
  EXPECT_EQ(view.take_numbers(*at_the_end, 32).count, 10U);
  EXPECT_EQ(after(100ms), (Words{"hard esp 0x00001001 to 198.51.100.7"}));
  EXPECT_EQ(view.take_numbers(*at_the_end, 32).count, 0U);
}

TEST_F(DatabasesTickTest, ADyingSaGivesWayToAnotherOne) {
  const FlowKey packet = flow("10.0.0.1", "10.1.0.1");
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10,
                       test::tunnel_template(here, there, 5)));
  add(sa(Direction::out, here, there, 0x1000, 5));
  SaSettings settings = sa(Direction::out, here, there, 0x1001, 5);
  settings.lifetime.seconds = {.soft = 10, .hard = 20};
  add(settings);
  EXPECT_EQ(sa_of(packet)->record->settings.id.spi, 0x1001U);
  after(11s);
  EXPECT_EQ(sa_of(packet)->record->settings.id.spi, 0x1000U) << "the older one is valid, the newer one dying";
  ASSERT_TRUE(databases_.remove({test::ip(there), 0x1000, Protocol::esp}));
  EXPECT_EQ(sa_of(packet)->record->settings.id.spi, 0x1001U) << "better than none";
  after(10s);
  EXPECT_EQ(sa_of(packet), nullptr) << "dead";
  EXPECT_EQ(after(100ms), (Words{"acquire 5 192.0.2.1 198.51.100.7"}));
}

TEST_F(DatabasesTickTest, ALongerLifetimeRevives) {
  SaSettings settings = sa(Direction::in, there, here, 0x1000);
  settings.lifetime.seconds = {.soft = 10, .hard = 20};
  add(settings);
  EXPECT_EQ(after(11s).size(), 1U);
  settings.udp = UdpPorts{};
  ASSERT_TRUE(databases_.update(settings));
  EXPECT_EQ(state_of(settings.id), SaState::dying) << "its lifetime has not changed";
  EXPECT_EQ(after(1s), Words{});
  settings.lifetime.seconds = {.soft = 30, .hard = 40};
  ASSERT_TRUE(databases_.update(settings));
  EXPECT_EQ(state_of(settings.id), SaState::valid);
  EXPECT_EQ(after(17s), Words{});
  EXPECT_EQ(after(2s), (Words{"soft esp 0x00001000 to 192.0.2.1"}));
  EXPECT_EQ(after(10s), (Words{"hard esp 0x00001000 to 192.0.2.1"}));
}

TEST_F(DatabasesTickTest, AReservedSpiExpires) {
  const auto reserve = [&](std::uint32_t least, std::uint32_t most) {
    return databases_.reserve_spi(test::ip(there), test::ip(here), Protocol::esp, 5, least, most);
  };
  ASSERT_EQ(reserve(0x1000, 0x1000).value(), 0x1000U);
  const SaId id{test::ip(here), 0x1000, Protocol::esp};
  EXPECT_EQ(state_of(id), SaState::larval);
  EXPECT_EQ(databases_.sa(id)->settings.reqid, 5U);
  EXPECT_FALSE(reserve(0x1000, 0x1000));
  EXPECT_FALSE(reserve(1, 255));
  EXPECT_EQ(after(164s), Words{});
  EXPECT_EQ(after(2s), (Words{"hard esp 0x00001000 to 192.0.2.1"}));
  EXPECT_EQ(databases_.sa(id), std::nullopt);
  EXPECT_EQ(reserve(0x1000, 0x1000).value(), 0x1000U);
  ASSERT_TRUE(databases_.update(sa(Direction::in, there, here, 0x1000)));
  EXPECT_EQ(state_of(id), SaState::valid);
  EXPECT_EQ(databases_.sa_count(), 1U);
  EXPECT_EQ(after(300s), Words{});
  EXPECT_EQ(reserve(0x1000, 0x1001).value(), 0x1001U) << "the other one is in use";
  add(sa(Direction::in, there, here, 0x1001));
  EXPECT_EQ(databases_.sa_count(), 2U);
}

TEST_F(DatabasesTickTest, SpisAreOfTheirRangeAndEachOnce) {
  std::vector<std::uint32_t> spis;
  for (int i = 0; i < 12; ++i) {
    const auto spi = databases_.reserve_spi(test::ip(there), test::ip(here), Protocol::esp, 0, 250, 267);
    ASSERT_TRUE(spi) << spi.error().message;
    spis.push_back(*spi);
  }
  EXPECT_FALSE(databases_.reserve_spi(test::ip(there), test::ip(here), Protocol::esp, 0, 250, 267));
  std::ranges::sort(spis);
  for (std::uint32_t i = 0; i < 12; ++i) EXPECT_EQ(spis[i], 256 + i);
  EXPECT_TRUE(databases_.reserve_spi(test::ip(there), test::ip("192.0.2.9"), Protocol::esp, 0, 256, 256));
  EXPECT_TRUE(databases_.reserve_spi(test::ip(there), test::ip(here), Protocol::ah, 0, 256, 256));
}

TEST_F(DatabasesTickTest, SaysOnceWhereAHostHasMovedTo) {
  add(sa(Direction::in, there, here, 0x1000));
  const packet::IpAddress address = test::ip(here), elsewhere = test::ip("203.0.113.5");
  const std::uint32_t spi = packet::be32(0x1000);
  const SadKey key = sad_key(reinterpret_cast<const std::uint8_t*>(&spi), 4, address.bytes.data(), Protocol::esp);
  const auto receive = [&](std::uint16_t port) {
    Sa* found = nullptr;
    const View& view = *databases_.pin(0);
    view.find_sas({&key, 1}, &found);
    view.note_moved(*found, elsewhere.bytes.data(), port);
  };
  for (int i = 0; i < 10; ++i) receive(4500);
  EXPECT_EQ(after(100ms), (Words{"moved esp 0x00001000 to 192.0.2.1 203.0.113.5 4500"}));
  receive(4500);
  EXPECT_EQ(after(1s), Words{});
  receive(4501);
  EXPECT_EQ(after(100ms), (Words{"moved esp 0x00001000 to 192.0.2.1 203.0.113.5 4501"}));
  after(30s);
  receive(4501);
  EXPECT_EQ(after(100ms).size(), 1U) << "nobody has done anything about it";
}

// Events may change the databases, as an IKE daemon's answers do.
TEST_F(DatabasesTickTest, WhoIsToldMayChangeThem) {
  struct Renews final : Events {
    explicit Renews(Databases& databases) : databases(databases) {}
    void acquire(const Acquire& acquire) override {
      EXPECT_TRUE(databases.add(sa(Direction::out, here, there, 0x1000, acquire.wanted.reqid)));
    }
    void expired(const SaStatus& sa, bool hard) override { EXPECT_TRUE(databases.remove(sa.settings.id)); }
    void moved(const SaStatus&, const packet::IpAddress&, std::uint16_t) override {}
    Databases& databases;
  };
  Renews renews(databases_);
  databases_.set_events(&renews);
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10,
                       test::tunnel_template(here, there, 5)));
  EXPECT_EQ(sa_of(flow("10.0.0.1", "10.1.0.1")), nullptr);
  after(100ms);
  EXPECT_NE(sa_of(flow("10.0.0.1", "10.1.0.1")), nullptr);
  SaSettings settings = sa(Direction::in, there, here, 0x1000);
  settings.lifetime.seconds.soft = 1;
  add(settings);
  after(2s);
  EXPECT_EQ(databases_.sa(settings.id), std::nullopt);
}

}  // namespace
}  // namespace sluice::ipsec
