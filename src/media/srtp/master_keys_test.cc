// What a channel does under keys that end or change, and with settings that it refuses.
#include "media/srtp/master_keys.h"

#include <gtest/gtest.h>

#include "media/srtp/channel_trial_test.h"
#include "media/srtp/key_derivation.h"

namespace sluice::srtp {
namespace {

using test::Bytes;
using test::Flight;
using test::Lane;
using test::Pair;
using test::Secrets;
using test::ssrc;

TEST(Channel, a_key_ends_after_its_lifetime_and_the_next_follows) {
  std::mt19937 random(1);
  Lane lane;
  const Secrets first(random, Suite::aes_cm_128_hmac_sha1_80, 2);
  const Secrets second(random, Suite::aes_cm_128_hmac_sha1_80, 2);
  const MasterKey masters[] = {first.view(3), second.view(2)};
  auto sender = Channel::make({.direction = Direction::protect}, masters, lane.keys, lane.pool);
  auto receiver = Channel::make({.direction = Direction::unprotect}, masters, lane.keys, lane.pool);
  ASSERT_TRUE(sender && receiver);
  Bytes last;
  for (std::uint32_t i = 0; i < 5; ++i) {
    Bytes packet = test::rtp_packet(ssrc, i, {1, 2});
    ASSERT_EQ(test::pass(lane, *sender, packet), Status::ok);
    // MKI before the tag.
    EXPECT_EQ(Bytes(packet.end() - 12, packet.end() - 10), i < 3 ? first.mki : second.mki);
    last = packet;
    ASSERT_EQ(test::pass(lane, *receiver, packet), Status::ok);
    EXPECT_EQ(packet, test::rtp_packet(ssrc, i, {1, 2}));
  }
  Bytes packet = test::rtp_packet(ssrc, 5, {});
  EXPECT_EQ(test::pass(lane, *sender, packet), Status::key_expired);
  EXPECT_EQ(test::prepare(*receiver, last).prepared, Status::key_expired);
  last[last.size() - 12] ^= 1;
  EXPECT_EQ(test::prepare(*receiver, last).prepared, Status::no_key);
}

TEST(Channel, a_lifetime_holds_for_packets_in_flight) {
  Pair pair;
  Channel receiver = pair.make({}, Direction::unprotect, 1);
  Flight one = test::prepare(receiver, pair.sealed_rtp(1));
  Flight two = test::prepare(receiver, pair.sealed_rtp(2));
  test::compute(pair.lane, one);
  test::compute(pair.lane, two);
  EXPECT_EQ(test::finish(receiver, one), Status::ok);
  EXPECT_EQ(test::finish(receiver, two), Status::key_expired);
}

// A rate of 16: a receiver without one agrees on the first 16 packets alone; the session keys are those of the period.
TEST(Channel, session_keys_change_with_the_key_derivation_rate) {
  for (const Protocol protocol : {Protocol::rtp, Protocol::rtcp}) {
    const ChannelSettings rated{.protocol = protocol, .key_derivation_rate = 16};
    Pair pair(rated);
    Channel without = pair.make({.protocol = protocol}, Direction::unprotect, 0);
    for (std::uint32_t i = 0; i < 200; ++i) {
      const Bytes plain =
          protocol == Protocol::rtp ? test::rtp_packet(ssrc, i, Bytes(20, 1)) : test::rtcp_packet(ssrc, Bytes(20, 1));
      Bytes packet = pair.sealed(plain);
      Bytes same = packet;
      EXPECT_EQ(test::pass(pair.lane, without, same), i < 16 ? Status::ok : Status::auth_failed) << i;
      ASSERT_EQ(test::pass(pair.lane, pair.receiver, packet), Status::ok) << i;
      ASSERT_EQ(packet, plain);
    }
    // The last packet again, under the keys of period 12 as a channel's only ones.
    const Bytes key = pair.secrets.key;
    const auto keys = derive(Suite::aes_cm_128_hmac_sha1_80, protocol, key, pair.secrets.salt, 12);
    ASSERT_TRUE(keys);
    ASSERT_TRUE(
        pair.lane.keys.replace(pair.lane.keys.used() - 1, keys->material(Suite::aes_cm_128_hmac_sha1_80, protocol)));
    Bytes packet =
        pair.sealed(protocol == Protocol::rtp ? test::rtp_packet(ssrc, 200, {9}) : test::rtcp_packet(ssrc, {9}));
    EXPECT_EQ(test::pass(pair.lane, without, packet), Status::ok);
  }
}

TEST(Channel, key_periods_in_flight_are_bounded) {
  Pair pair({.key_derivation_rate = 2});
  std::vector<Flight> flights;
  for (std::uint32_t i = 0; i < 8; ++i) {  // four periods
    flights.push_back(test::prepare(pair.sender, test::rtp_packet(ssrc, i, {})));
    ASSERT_EQ(flights.back().prepared, Status::ok) << i;
  }
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 8, {})).prepared, Status::too_many_in_flight);
  EXPECT_EQ(test::finish(pair.sender, flights[2]), Status::ok);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 8, {})).prepared, Status::too_many_in_flight);
  EXPECT_EQ(test::finish(pair.sender, flights[3]), Status::ok);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 8, {})).prepared, Status::ok);
}

TEST(Channel, settings_are_checked) {
  std::mt19937 random(1);
  Lane lane;
  const Secrets plain(random, Suite::aes_cm_128_hmac_sha1_80);
  const Secrets with_mki(random, Suite::aes_cm_128_hmac_sha1_80, 4);
  const Secrets long_mki(random, Suite::aes_cm_128_hmac_sha1_80, 129);
  const MasterKey twice[] = {with_mki.view(), with_mki.view()};
  const MasterKey mixed[] = {with_mki.view(), plain.view()};
  const MasterKey none[] = {plain.view(), plain.view()};
  const MasterKey one[] = {plain.view()};
  const MasterKey too_long[] = {plain.view((std::uint64_t{1} << 31) + 1)};
  const MasterKey mki_too_long[] = {long_mki.view()};
  struct Case {
    ChannelSettings settings;
    std::span<const MasterKey> masters;
    std::string_view error;
  };
  for (const Case& c : {
           Case{{}, {}, "0 master keys: must be 1 to 16"},
           Case{{.max_streams = 0}, one, "a channel of 0 streams: must be at least 1"},
           Case{{.key_derivation_rate = 3}, one, "a key derivation rate of 3: must be 0 or a power of two up to 2^24"},
           Case{{.key_derivation_rate = 1U << 25},
                one,
                "a key derivation rate of 33554432: must be 0 or a power of two up to 2^24"},
           Case{{},
                none,
                "2 master keys with an MKI of 0 bytes: must be at most 128, and more than one master key need one"},
           Case{{},
                mki_too_long,
                "1 master keys with an MKI of 129 bytes: must be at most 128, and more than one master key need one"},
           Case{{}, mixed, "MKIs of 4 and 0 bytes: must have one length"},
           Case{{}, twice, "two master keys with one MKI"},
           Case{{.protocol = Protocol::rtcp}, too_long, "a lifetime of 2147483649 packets: must be at most 2^31"},
           Case{{.suite = Suite::aead_aes_128_gcm},
                one,
                "AEAD_AES_128_GCM: a master key of 16 and a salt of 14 bytes: must be 16 and 12"},
       }) {
    const auto channel = Channel::make(c.settings, c.masters, lane.keys, lane.pool);
    ASSERT_FALSE(channel) << c.error;
    EXPECT_EQ(channel.error().message, c.error);
  }
  auto keys = crypto::KeyTable::make(2, false);
  const auto full = Channel::make({.key_derivation_rate = 16}, one, *keys, lane.pool);
  EXPECT_EQ(full.error().message, "the table of keys is full: it has room for 2");
  EXPECT_EQ(keys->used(), 0U);
}

}  // namespace
}  // namespace sluice::srtp
