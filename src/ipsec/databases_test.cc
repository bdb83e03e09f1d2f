#include "ipsec/databases.h"

#include <gtest/gtest.h>

#include <tuple>

#include "ipsec/ipsec_trial_test.h"
#include "ipsec/sa_record.h"
#include "packet/headers.h"

namespace sluice::ipsec {
namespace {

using test::flow;
using test::sa;
using test::selector;

constexpr std::string_view here = "192.0.2.1", there = "198.51.100.7";

class DatabasesTest : public testing::Test {
 protected:
  DatabasesTest() { view_ = databases_.pin(0); }
  ~DatabasesTest() override { databases_.unpin(0); }

  // What a lane sees from now on.
  const View& look() { return *(view_ = databases_.pin(0)); }
  const PolicyEntry* policy_of(const FlowKey& flow, Direction direction = Direction::out) {
    const PacketKey key = packet_key(flow);
    const PolicyEntry* found = nullptr;
    look().find_policies(direction, {&key, 1}, &found, nullptr);
    return found;
  }
  // The SPI that a packet of the first template leaves with; 0: there is no SA.
  std::uint32_t spi_of(const FlowKey& flow, unsigned index = 0) {
    const PolicyEntry* const policy = policy_of(flow);
    if (policy == nullptr) return 0;
    const Sa* const found = view_->outbound(*policy, index, packet_key(flow));
    return found == nullptr ? 0 : found->record->settings.id.spi;
  }
  Sa* inbound(std::string_view destination, std::uint32_t spi, Protocol protocol = Protocol::esp) {
    const packet::IpAddress address = test::ip(destination);
    const std::uint32_t on_wire = packet::be32(spi);
    const SadKey key =
        sad_key(reinterpret_cast<const std::uint8_t*>(&on_wire), address.family, address.bytes.data(), protocol);
    Sa* found = nullptr;
    look().find_sas({&key, 1}, &found);
    return found;
  }
  void add(const SaSettings& settings) {
    const auto added = databases_.add(settings);
    ASSERT_TRUE(added) << added.error().message;
  }
  void add(const Policy& policy) {
    const auto added = databases_.add(policy, false);
    ASSERT_TRUE(added) << added.error().message;
  }

  crypto::KeyTable keys_ = crypto::KeyTable::make(64, true).value();
  Databases databases_{keys_, {.sas = 16, .policies = 16, .lanes = 2, .readers = 3}};
  const View* view_ = nullptr;
};

TEST_F(DatabasesTest, FindsInboundSasByTheirIds) {
  add(sa(Direction::in, there, here, 0x1000));
  add(sa(Direction::in, there, here, 0x1001));
  add(sa(Direction::in, "2001:db8::2", "2001:db8::1", 0x1000));
  add(sa(Direction::out, here, there, 0x2000));
  ASSERT_NE(inbound(here, 0x1000), nullptr);
  EXPECT_EQ(inbound(here, 0x1000)->record->settings.id.spi, 0x1000U);
  EXPECT_EQ(inbound(here, 0x1001)->record->settings.id.spi, 0x1001U);
  EXPECT_EQ(inbound("2001:db8::1", 0x1000)->family, 6);
  EXPECT_EQ(inbound("2001:db8::1", 0x1001), nullptr);
  EXPECT_EQ(inbound(here, 0x1000, Protocol::ah), nullptr);
  EXPECT_EQ(inbound(there, 0x2000), nullptr) << "an outbound one";
  EXPECT_EQ(databases_.sa_count(), 4U);
}

// RFC 3602, 3686, 4106, 7634, 2410: what stands in front of the ciphertext, and what it is padded to.
TEST(PacketFormatTest, HasTheSizesOfTheCipher) {
  using enum crypto::Cipher;
  using Sizes = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // IV, alignment, ICV
  const auto of = [](crypto::Cipher cipher) {
    SaSettings settings = sa(Direction::out, here, there, 0x1000);
    settings.transform = {.cipher = cipher, .icv_length = 16};
    const PacketFormat format = packet_format(settings).value();
    return Sizes{format.iv_bytes(), format.align, format.icv};
  };
  EXPECT_EQ(of(aes_cbc), Sizes(16, 16, 16));
  for (const crypto::Cipher cipher : {aes_ctr_esp, aes_gcm_esp, chacha20_poly1305_esp}) {
    EXPECT_EQ(of(cipher), Sizes(8, 4, 16));
  }
  EXPECT_EQ(of(null), Sizes(0, 4, 16));
}

TEST_F(DatabasesTest, AnSaHasWhatPacketsNeed) {
  SaSettings settings = sa(Direction::in, there, here, 0x1000);
  settings.udp = UdpPorts{4500, 4501};
  settings.esn = true;
  settings.sequence = 7;
  settings.replay_window = 1024;
  settings.selector = selector("10.1.0.0/16", "10.0.0.0/8");
  settings.dont_fragment = DontFragment::set;
  settings.copy_dscp = false;
  settings.pad_to = 1400;
  add(settings);
  const Sa& found = *inbound(here, 0x1000);
  EXPECT_TRUE(found.esn());
  EXPECT_EQ(found.window.highest(), 7U);
  EXPECT_EQ(found.window.size(), 1024U);
  const Outer& outer = *found.outer.load();
  EXPECT_EQ(outer.format.icv, 12);
  EXPECT_FALSE(outer.format.copies_dscp);
  EXPECT_EQ(outer.format.dont_fragment, DontFragment::set);
  EXPECT_EQ(outer.format.pad_to, 1400);
  EXPECT_TRUE(outer.udp);
  EXPECT_EQ(outer.destination_port, packet::be16(4501));
  EXPECT_EQ(packet::IpAddress::from_bytes(4, outer.source.data()), test::ip(there));
  EXPECT_TRUE(found.has_inner(packet_key(flow("10.1.0.1", "10.0.0.1"))));
  EXPECT_FALSE(found.has_inner(packet_key(flow("10.2.0.1", "10.0.0.1"))));
}

TEST_F(DatabasesTest, RefusesSasThatCannotBe) {
  const auto refused = [&](const SaSettings& settings) {
    const auto added = databases_.add(settings);
    return added ? std::string("accepted") : added.error().message;
  };
  const SaSettings good = sa(Direction::in, there, here, 0x1000);
  SaSettings settings = good;
  settings.id.spi = 255;
  EXPECT_EQ(refused(settings), "the SA esp 0x000000ff to 192.0.2.1 has a reserved SPI; take one from 256");
  settings = good;
  settings.replay_window = 4097;
  EXPECT_EQ(refused(settings), "the SA esp 0x00001000 to 192.0.2.1 has a replay window of 4097 packets; at most 4096");
  settings = good;
  settings.source = test::ip("2001:db8::1");
  EXPECT_NE(refused(settings), "accepted");
  settings = good;
  settings.sequence = last_short_sequence + 1;
  EXPECT_NE(refused(settings), "accepted");
  settings.esn = true;
  EXPECT_EQ(refused(settings), "accepted");
  EXPECT_EQ(refused(good), "there is an SA esp 0x00001000 to 192.0.2.1 already");
  settings = sa(Direction::in, there, here, 0x1001);
  settings.transform.icv_length = 77;
  EXPECT_NE(refused(settings), "accepted") << "by the table of keys";
  settings = sa(Direction::in, there, here, 0x1001);
  settings.id.protocol = Protocol::ah;
  settings.udp = UdpPorts{};
  EXPECT_NE(refused(settings), "accepted");
  EXPECT_EQ(databases_.sa_count(), 1U);
  EXPECT_EQ(keys_.used(), 1U) << "what was refused holds no key";
}

TEST_F(DatabasesTest, ReplacesAnSaByAnotherOfItsId) {
  add(sa(Direction::in, there, here, 0x1000));
  Sa& before = *inbound(here, 0x1000);
  before.window.accept(7);
  SaSettings settings = sa(Direction::in, there, here, 0x1000);
  settings.replay_window = 128;
  ASSERT_TRUE(databases_.replace(settings));
  const Sa& now = *inbound(here, 0x1000);
  EXPECT_NE(&now, &before);
  EXPECT_NE(now.key, before.key);
  EXPECT_EQ(now.window.highest(), 0U);
  EXPECT_EQ(now.window.size(), 128U);
  EXPECT_EQ(databases_.sa_count(), 1U);
  settings = sa(Direction::out, there, here, 0x1000);
  ASSERT_TRUE(databases_.replace(settings));
  EXPECT_EQ(inbound(here, 0x1000), nullptr) << "it is outbound now";
  EXPECT_EQ(databases_.sa_count(), 1U);
  settings.transform.icv_length = 77;
  EXPECT_FALSE(databases_.replace(settings));
  EXPECT_EQ(databases_.sa(settings.id)->settings.direction, Direction::out) << "what is refused changes nothing";
  EXPECT_EQ(databases_.replace(sa(Direction::in, there, here, 0x1001)).error().message,
            "there is no SA esp 0x00001001 to 192.0.2.1");
}

TEST_F(DatabasesTest, RefusesMoreThanThereIsCapacityFor) {
  for (std::uint32_t i = 0; i < 16; ++i) add(sa(Direction::in, there, here, 0x1000 + i));
  const auto refused = databases_.add(sa(Direction::in, there, here, 0x2000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the SA esp 0x00002000 to 192.0.2.1: no capacity: there is one for 16 SAs");
  EXPECT_TRUE(databases_.remove({test::ip(here), 0x1000, Protocol::esp}));
  look();
  EXPECT_TRUE(databases_.add(sa(Direction::in, there, here, 0x2000))) << "nobody is in the one that was removed";
  EXPECT_EQ(keys_.used(), 16U);
}

TEST_F(DatabasesTest, PacketsUnderWayOfARemovedSaAreFinished) {
  add(sa(Direction::in, there, here, 0x1000));
  Sa* const found = inbound(here, 0x1000);
  ASSERT_TRUE(databases_.remove(found->record->settings.id));
  EXPECT_FALSE(databases_.remove({test::ip(here), 0x1000, Protocol::esp}));
  databases_.tick(std::chrono::steady_clock::now());
  EXPECT_EQ(databases_.leaving(), 1U);
  EXPECT_EQ(keys_.used(), 1U) << "the batch may still use the key";
  EXPECT_TRUE(found->window.accept(5));
  EXPECT_TRUE(view_->count(*found, 0, 1, 100));
  EXPECT_EQ(inbound(here, 0x1000), nullptr) << "the next batch does not find it";
  databases_.tick(std::chrono::steady_clock::now());
  EXPECT_EQ(databases_.leaving(), 0U);
  EXPECT_EQ(keys_.used(), 0U);
}

TEST_F(DatabasesTest, UpdateKeepsNumbersAndCounters) {
  SaSettings settings = sa(Direction::in, there, here, 0x1000);
  EXPECT_FALSE(databases_.update(settings));
  add(settings);
  Sa* const found = inbound(here, 0x1000);
  EXPECT_TRUE(found->window.accept(9));
  EXPECT_TRUE(view_->count(*found, 1, 1, 100));
  settings.udp = UdpPorts{1, 2};
  ASSERT_TRUE(databases_.update(settings));
  const Outer* const before = inbound(here, 0x1000)->outer.load();
  settings.udp = UdpPorts{4500, 4500};
  settings.source = test::ip("203.0.113.5");
  settings.lifetime.packets.hard = 2;
  ASSERT_TRUE(databases_.update(settings));
  databases_.tick(std::chrono::steady_clock::now());
  EXPECT_EQ(before->source_port, packet::be16(1)) << "the batch may still look at it";
  EXPECT_EQ(inbound(here, 0x1000), found);
  EXPECT_TRUE(found->outer.load()->udp);
  EXPECT_FALSE(found->window.accept(9));
  const SaStatus status = databases_.sa(settings.id).value();
  EXPECT_EQ(status.settings.source, settings.source);
  EXPECT_EQ(status.counters.packets, 1U);
  EXPECT_EQ(status.counters.bytes, 100U);
  EXPECT_EQ(status.counters.sequence, 9U);
  EXPECT_TRUE(view_->count(*found, 1, 1, 100));
  EXPECT_FALSE(view_->count(*found, 1, 1, 100)) << "the new limit counts what was before";
}

TEST_F(DatabasesTest, AnSaInTheSlotOfAnotherOneBeginsAnew) {
  SaSettings settings = sa(Direction::in, there, here, 0x1000);
  settings.lifetime.packets.hard = 1000;
  add(settings);
  Sa* const before = inbound(here, 0x1000);
  EXPECT_TRUE(view_->count(*before, 0, 1, 100));  // and a share for more
  ASSERT_TRUE(databases_.remove(settings.id));
  look();
  databases_.tick(std::chrono::steady_clock::now());
  settings.id.spi = 0x1001;
  settings.lifetime.packets.hard = 1;
  add(settings);
  Sa* const found = inbound(here, 0x1001);
  ASSERT_EQ(found, before) << "the test needs the same slot";
  EXPECT_EQ(databases_.sa(settings.id)->counters.packets, 0U);
  EXPECT_TRUE(view_->count(*found, 0, 1, 100));
  EXPECT_FALSE(view_->count(*found, 0, 1, 100));
}

TEST_F(DatabasesTest, StatusHasNoKeys) {
  add(sa(Direction::in, there, here, 0x1000));
  const SaStatus status = databases_.sa({test::ip(here), 0x1000, Protocol::esp}).value();
  EXPECT_EQ(status.state, SaState::valid);
  EXPECT_EQ(status.settings.transform.hash, crypto::Hash::hmac_sha1);
  EXPECT_EQ(status.settings.transform.auth_key.length, 20) << "what lists show";
  for (const std::uint8_t byte : status.settings.transform.auth_key.bytes.bytes) EXPECT_EQ(byte, 0);
}

TEST_F(DatabasesTest, ListsSasInOrder) {
  add(sa(Direction::out, here, there, 0x3000));
  add(sa(Direction::in, there, here, 0x2000));
  add(sa(Direction::in, there, here, 0x1000));
  ASSERT_TRUE(databases_.reserve_spi(test::ip(there), test::ip(here), Protocol::esp, 1, 0x1800, 0x1800));
  std::vector<std::uint32_t> spis;
  for (const SaStatus& status : databases_.sas(10)) spis.push_back(status.settings.id.spi);
  EXPECT_EQ(spis, (std::vector<std::uint32_t>{0x1000, 0x1800, 0x2000, 0x3000}));
  EXPECT_EQ(databases_.sas(2).size(), 2U);
  databases_.flush_sas(Protocol::ah);
  EXPECT_EQ(databases_.sa_count(), 4U);
  databases_.flush_sas(std::nullopt);
  EXPECT_EQ(databases_.sa_count(), 0U);
  EXPECT_EQ(inbound(here, 0x1000), nullptr);
}

TEST_F(DatabasesTest, APolicyTakesTheNewestSaOfItsTemplate) {
  const FlowKey packet = flow("10.0.0.1", "10.1.0.1");
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10,
                       test::tunnel_template(here, there, 5)));
  EXPECT_EQ(spi_of(packet), 0U);
  add(sa(Direction::out, here, there, 0x1000, 5));
  EXPECT_EQ(spi_of(packet), 0x1000U);
  add(sa(Direction::out, here, there, 0x1001, 6));
  add(sa(Direction::out, here, "198.51.100.8", 0x1002, 5));
  add(sa(Direction::in, here, there, 0x1003, 5));
  EXPECT_EQ(spi_of(packet), 0x1000U) << "those are of another reqid, another tunnel, another direction";
  add(sa(Direction::out, here, there, 0x1004, 5));
  EXPECT_EQ(spi_of(packet), 0x1004U) << "make before break";
  ASSERT_TRUE(databases_.remove({test::ip(there), 0x1000, Protocol::esp}));
  EXPECT_EQ(spi_of(packet), 0x1004U);
  ASSERT_TRUE(databases_.remove({test::ip(there), 0x1004, Protocol::esp}));
  EXPECT_EQ(spi_of(packet), 0U);
}

TEST_F(DatabasesTest, APolicyTakesAnSaThatWasThereBefore) {
  add(sa(Direction::out, here, there, 0x1000, 5));
  add(sa(Direction::out, here, there, 0x1001, 6));
  Template any = test::tunnel_template(here, there, 0);
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10, any));
  any.spi = 0x1000;
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.2.0.0/16"), 10, any));
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.3.0.0/16"), 10,
                       test::tunnel_template(here, there, 5)));
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.1")), 0x1001U) << "any reqid: the newest";
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.2.0.1")), 0x1000U) << "this SPI alone";
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.3.0.1")), 0x1000U);
  ASSERT_TRUE(databases_.remove({test::ip(there), 0x1000, Protocol::esp}));
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.1")), 0x1001U);
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.2.0.1")), 0U);
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.3.0.1")), 0U);
}

TEST_F(DatabasesTest, AnSaThatMovesServesThePolicyOfItsNewAddress) {
  SaSettings settings = sa(Direction::out, here, there, 0x1000, 5);
  add(settings);
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10,
                       test::tunnel_template(here, there, 5)));
  add(test::protecting(Direction::out, selector("10.0.0.0/8", "10.2.0.0/16"), 10,
                       test::tunnel_template("192.0.2.9", there, 5)));
  settings.source = test::ip("192.0.2.9");
  ASSERT_TRUE(databases_.update(settings));
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.1")), 0U);
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.2.0.1")), 0x1000U);
}

TEST_F(DatabasesTest, EspInAhTakesTwoSas) {
  const FlowKey packet = flow("10.0.0.1", "10.1.0.1");
  Policy policy = test::protecting(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 10,
                                   test::tunnel_template(here, there, 5));
  policy.templates.push_back({.protocol = Protocol::ah, .mode = Mode::transport, .reqid = 5});
  add(policy);
  add(sa(Direction::out, here, there, 0x1000, 5));
  SaSettings ah = sa(Direction::out, here, there, 0x1001, 5);
  ah.id.protocol = Protocol::ah;
  ah.mode = Mode::transport;
  add(ah);
  EXPECT_EQ(spi_of(packet, 0), 0x1000U);
  EXPECT_EQ(spi_of(packet, 1), 0x1001U) << "AH is between the tunnel's ends";
}

TEST_F(DatabasesTest, TransportModeTakesThePacketsOwnAddresses) {
  Template transport{.protocol = Protocol::esp, .mode = Mode::transport, .reqid = 5};
  add(test::protecting(Direction::out, selector("10.0.0.0/24", "10.1.0.0/24"), 10, transport));
  add(test::protecting(Direction::out, selector("10.0.0.9", "10.1.0.9"), 5, transport));
  const auto add_between = [&](std::string_view source, std::string_view destination, std::uint32_t spi) {
    SaSettings settings = sa(Direction::out, source, destination, spi, 5);
    settings.mode = Mode::transport;
    add(settings);
  };
  add_between("10.0.0.1", "10.1.0.1", 0x1000);
  add_between("10.0.0.2", "10.1.0.1", 0x1001);
  add_between("10.0.0.9", "10.1.0.9", 0x1002);
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.1")), 0x1000U);
  EXPECT_EQ(spi_of(flow("10.0.0.2", "10.1.0.1")), 0x1001U);
  EXPECT_EQ(spi_of(flow("10.0.0.2", "10.1.0.2")), 0U);
  EXPECT_EQ(spi_of(flow("10.0.0.9", "10.1.0.9")), 0x1002U);
  add_between("10.0.0.1", "10.1.0.1", 0x1003);
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.1")), 0x1003U);
  ASSERT_TRUE(databases_.remove({test::ip("10.1.0.1"), 0x1003, Protocol::esp}));
  ASSERT_TRUE(databases_.remove({test::ip("10.1.0.1"), 0x1000, Protocol::esp}));
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.1")), 0U);
}

// Whether policy and SA have a reqid or not.
TEST_F(DatabasesTest, TransportModeComparesSourceAndDestinationWhateverTheReqid) {
  add(test::protecting(Direction::out, selector("10.0.0.0/24", "10.1.0.0/24"), 10,
                       {.protocol = Protocol::esp, .mode = Mode::transport}));
  const auto add_between = [&](std::string_view source, std::string_view destination, std::uint32_t spi,
                               std::uint32_t reqid) {
    SaSettings settings = sa(Direction::out, source, destination, spi, reqid);
    settings.mode = Mode::transport;
    add(settings);
  };
  add_between("10.0.0.1", "10.1.0.1", 0x1000, 0);
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.1")), 0x1000U);
  EXPECT_EQ(spi_of(flow("10.0.0.2", "10.1.0.1")), 0U) << "another source";
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.2")), 0U) << "another destination";
  add_between("10.0.0.2", "10.1.0.1", 0x1001, 5);
  EXPECT_EQ(spi_of(flow("10.0.0.2", "10.1.0.1")), 0x1001U) << "any reqid";
  EXPECT_EQ(spi_of(flow("10.0.0.1", "10.1.0.1")), 0x1000U) << "a newer one, of another source";
}

TEST_F(DatabasesTest, PoliciesOfBothDirectionsAreApart) {
  const Selector one = selector("10.0.0.0/8", "10.1.0.0/16");
  add(test::bypassing(Direction::out, one, 10));
  EXPECT_NE(policy_of(flow("10.0.0.1", "10.1.0.1")), nullptr);
  EXPECT_EQ(policy_of(flow("10.0.0.1", "10.1.0.1"), Direction::in), nullptr);
  EXPECT_EQ(databases_.policy(Direction::in, one), std::nullopt);
  add(test::bypassing(Direction::in, one, 11));
  EXPECT_EQ(policy_of(flow("10.0.0.1", "10.1.0.1"), Direction::in)->policy.priority, 11U);
  EXPECT_EQ(databases_.policy(Direction::out, one)->priority, 10U);
  EXPECT_EQ(databases_.policies(10).size(), 2U);
  EXPECT_EQ(databases_.policies(10).front().direction, Direction::in);
  EXPECT_TRUE(databases_.remove_policy(Direction::in, one));
  EXPECT_FALSE(databases_.remove_policy(Direction::in, one));
  EXPECT_EQ(databases_.policy_count(), 1U);
  databases_.flush_policies();
  EXPECT_EQ(databases_.policy_count(), 0U);
  EXPECT_EQ(policy_of(flow("10.0.0.1", "10.1.0.1")), nullptr);
}

TEST_F(DatabasesTest, AViewKnowsWhetherThereArePolicies) {
  const Selector from = selector("10.0.0.0/8", "10.9.0.0/16");
  const auto there_are = [&](Direction direction) { return look().has_policies(direction); };
  EXPECT_FALSE(there_are(Direction::out) || there_are(Direction::in));
  add(test::bypassing(Direction::out, from, 10));
  EXPECT_TRUE(there_are(Direction::out));
  EXPECT_FALSE(there_are(Direction::in));
  add(test::bypassing(Direction::in, from, 10));
  EXPECT_TRUE(there_are(Direction::in));
  EXPECT_TRUE(databases_.remove_policy(Direction::out, from));
  EXPECT_FALSE(there_are(Direction::out));
  EXPECT_TRUE(there_are(Direction::in));
  databases_.flush_policies();
  EXPECT_FALSE(there_are(Direction::in));
}

TEST_F(DatabasesTest, PoliciesCountAndAReplacedOneBeginsAnew) {
  const Selector one = selector("10.0.0.0/8", "10.1.0.0/16");
  add(test::bypassing(Direction::out, one, 10));
  const PolicyEntry* const entry = policy_of(flow("10.0.0.1", "10.1.0.1"));
  view_->count(Direction::out, *entry, 0, 2, 200);
  view_->count(Direction::out, *entry, 1, 1, 100);
  EXPECT_EQ(databases_.counts(Direction::out, one), (Count{3, 300}));
  EXPECT_EQ(databases_.counts(Direction::in, one), std::nullopt);
  EXPECT_FALSE(databases_.add(test::bypassing(Direction::out, one, 12), false));
  EXPECT_TRUE(databases_.add(test::bypassing(Direction::out, one, 12), true));
  EXPECT_EQ(entry->policy.priority, 10U) << "it is what the batch has found";
  EXPECT_EQ(policy_of(flow("10.0.0.1", "10.1.0.1"))->policy.priority, 12U);
  EXPECT_EQ(databases_.counts(Direction::out, one), Count{});
}

// A hundred times as many as there is capacity for, one after the other.
TEST_F(DatabasesTest, WhatIsRemovedGivesItsCapacityBack) {
  for (std::uint32_t i = 0; i < 1600; ++i) {
    look();
    const std::string host = "10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256);
    const Selector one = selector("10.0.0.0/8", host);
    add(test::protecting(Direction::out, one, i % 7, test::tunnel_template(here, there, i + 1)));
    add(sa(Direction::out, here, there, 0x1000 + i, i + 1));
    add(sa(Direction::in, there, here, 0x1000 + i, i + 1));
    ASSERT_EQ(spi_of(flow("10.0.0.1", host)), 0x1000 + i);
    ASSERT_TRUE(databases_.remove({test::ip(there), 0x1000 + i, Protocol::esp}));
    ASSERT_TRUE(databases_.remove({test::ip(here), 0x1000 + i, Protocol::esp}));
    ASSERT_TRUE(databases_.remove_policy(Direction::out, one));
  }
  look();
  databases_.tick(std::chrono::steady_clock::now());
  EXPECT_EQ(databases_.leaving(), 0U);
  EXPECT_EQ(keys_.used(), 0U);
}

}  // namespace
}  // namespace sluice::ipsec
