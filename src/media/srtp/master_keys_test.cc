// What a channel does under keys that end or change, and with settings that it refuses.
#include "media/srtp/master_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

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

TEST(Channel, AKeyEndsAfterItsLifetimeAndTheNextFollows) {
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

TEST(Channel, ALifetimeHoldsForPacketsInFlight) {
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
TEST(Channel, SessionKeysChangeWithTheKeyDerivationRate) {
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

TEST(Channel, KeyPeriodsInFlightAreBounded) {
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

// Forged packets of other periods, in front of every packet of the stream's, in one batch with it.
TEST(Channel, ForgedPeriodsDoNotStopAnAuthenticStream) {
  constexpr std::uint32_t rate = 16;
  Pair pair({.key_derivation_rate = rate});
  const std::uint32_t in_table = pair.lane.keys.used();
  ASSERT_EQ(pair.receive(pair.sealed_rtp(0)), Status::ok);
  for (std::uint32_t sequence = 1; sequence < 20 * rate; ++sequence) {
    std::vector<Flight> forged;
    for (std::uint32_t i = 0; i < 12; ++i) {
      // Of the known SSRC ahead, and behind where there is capacity; of others anywhere.
      const std::uint32_t of = i % 3 == 2 ? ssrc + 1 + i : ssrc;
      const std::uint32_t at = i % 3 == 1 ? sequence - std::min(sequence, i * rate) : sequence + (i + 1) * rate;
      forged.push_back(test::prepare(pair.receiver, test::rtp_packet(of, at, Bytes(20, 7))));
    }
    Flight own = test::prepare(pair.receiver, pair.sealed_rtp(sequence));
    ASSERT_EQ(own.prepared, Status::ok) << sequence;
    for (Flight& one : forged) {
      if (one.prepared != Status::ok) continue;
      test::compute(pair.lane, one);
      EXPECT_EQ(test::finish(pair.receiver, one), Status::auth_failed);
    }
    test::compute(pair.lane, own);
    ASSERT_EQ(test::finish(pair.receiver, own), Status::ok) << sequence;
  }
  EXPECT_EQ(pair.lane.keys.used(), in_table);
  EXPECT_EQ(pair.receiver.streams(), 1U);
}

// What is in flight for strangers at once is one period, and so at most one is derived.
TEST(Channel, StrangersHaveOnePeriodAtATime) {
  Pair pair({.key_derivation_rate = 16});
  ASSERT_EQ(pair.receive(pair.sealed_rtp(0)), Status::ok);
  const auto forge = [&](std::uint32_t of, std::uint32_t sequence) {
    return test::prepare(pair.receiver, test::rtp_packet(of, sequence, Bytes(20, 7)));
  };
  Flight first = forge(ssrc, 1600);
  ASSERT_EQ(first.prepared, Status::ok);
  EXPECT_EQ(forge(ssrc, 3200).prepared, Status::too_many_in_flight);
  EXPECT_EQ(forge(ssrc + 1, 4800).prepared, Status::too_many_in_flight);
  EXPECT_EQ(forge(ssrc, 1601).prepared, Status::ok) << "the same period";
  for (const std::uint32_t near : {1U, 17U, 33U}) EXPECT_EQ(forge(ssrc, near).prepared, Status::ok) << near;
  // A gap in the stream is bridged.
  Pair other({.key_derivation_rate = 16});
  ASSERT_EQ(other.receive(other.sealed_rtp(0)), Status::ok);
  ASSERT_EQ(other.receive(other.sealed_rtp(1600)), Status::ok);
  ASSERT_EQ(other.receive(other.sealed_rtp(30'000)), Status::ok);
}

// The periods whose session keys one master key with a rate has: 0 to 3 at first, at places of these numbers.
class Periods {
 public:
  static constexpr std::optional<std::uint64_t> unknown = std::nullopt;

  // Where the period of a packet is, in flight from now on; none: there is no place. `here`: the period of the highest
  // authenticated index of its SSRC.
  std::optional<unsigned> take(std::uint64_t number, std::optional<std::uint64_t> here) {
    std::uint8_t place = 0;
    std::uint32_t slot = 0;
    const Status status = keys_->take(0, number * rate, here ? *here * rate : MasterKeys::no_highest, place, slot);
    EXPECT_TRUE(status == Status::ok || status == Status::too_many_in_flight) << number;
    return status == Status::ok ? std::optional<unsigned>(place) : std::nullopt;
  }
  // Of a packet that is forged, or that is authentic.
  std::optional<unsigned> forged(std::uint64_t number, std::optional<std::uint64_t> here) {
    const auto place = take(number, here);
    if (place) keys_->put_back(0, static_cast<std::uint8_t>(*place));
    return place;
  }
  std::optional<unsigned> authentic(std::uint64_t number, std::optional<std::uint64_t> here) {
    const auto place = forged(number, here);
    if (place) keys_->establish(0, static_cast<std::uint8_t>(*place));
    return place;
  }

 private:
  static constexpr std::uint32_t rate = 16;
  std::mt19937 random_{1};
  crypto::KeyTable table_ = *crypto::KeyTable::make(key_periods, false);
  Secrets secrets_{random_, Suite::aes_cm_128_hmac_sha1_80};
  MasterKey master_ = secrets_.view();
  Expected<MasterKeys> keys_ =
      MasterKeys::make(Suite::aes_cm_128_hmac_sha1_80, Protocol::rtp, rate, {&master_, 1}, table_);
};

TEST(MasterKeys, GiveUpTheOldestStrangerFirst) {
  Periods periods;
  ASSERT_EQ(periods.authentic(0, Periods::unknown), 0U);
  EXPECT_EQ(periods.forged(100, 0), 1U) << "near, but of nothing authentic";
  EXPECT_EQ(periods.forged(103, 0), 2U);
  EXPECT_EQ(periods.forged(101, 0), 3U);
  EXPECT_EQ(periods.forged(102, 0), 1U);
  EXPECT_EQ(periods.forged(104, 0), 3U);
  EXPECT_EQ(periods.forged(105, Periods::unknown), 1U) << "not the one that was authentic, which is older";
}

TEST(MasterKeys, GiveUpNothingNearWhatWasAuthenticForAStranger) {
  Periods periods;
  ASSERT_EQ(periods.authentic(10, Periods::unknown), 0U);
  ASSERT_EQ(periods.authentic(11, 10), 1U);
  ASSERT_EQ(periods.authentic(12, 11), 2U);
  ASSERT_EQ(periods.authentic(50, Periods::unknown), 3U) << "another SSRC's";
  EXPECT_EQ(periods.forged(100, 10), 3U);
  EXPECT_EQ(periods.authentic(13, 12), 3U);
  EXPECT_EQ(periods.forged(100, 11), 0U) << "what is behind";
}

TEST(MasterKeys, GiveUpThePeriodOfTheHighestIndexForNothing) {
  Periods periods;
  ASSERT_EQ(periods.authentic(10, Periods::unknown), 0U);
  ASSERT_EQ(periods.authentic(50, Periods::unknown), 1U);
  ASSERT_EQ(periods.authentic(51, 50), 2U);
  ASSERT_EQ(periods.authentic(52, 51), 3U);
  EXPECT_EQ(periods.take(11, 10), 1U) << "the oldest but it";
}

TEST(MasterKeys, GiveUpNothingInFlightAndForWhatIsNearAllElse) {
  Periods periods;
  ASSERT_EQ(periods.authentic(10, Periods::unknown), 0U);
  ASSERT_EQ(periods.authentic(12, 10), 1U);
  ASSERT_EQ(periods.authentic(50, Periods::unknown), 2U);
  ASSERT_EQ(periods.take(50, 50), 2U);
  ASSERT_EQ(periods.take(51, 50), 3U);
  EXPECT_EQ(periods.take(11, 10), 1U) << "in the place of one as near";
  EXPECT_EQ(periods.take(12, 10), std::nullopt);
}

// SRTCP's index is whatever a packet says.
TEST(Channel, PeriodsThatAreTooFarAheadAreRefused) {
  for (const std::uint32_t rate : {0U, 16U}) {
    Pair pair({.protocol = Protocol::rtcp, .key_derivation_rate = rate});
    ASSERT_EQ(pair.receive(pair.sealed(test::rtcp_packet(ssrc, Bytes(20, 1)))), Status::ok);
    for (const std::uint32_t ahead : {0x8000U, 0x8001U, 0x7fff'fff0U}) {
      Bytes forged = pair.sealed(test::rtcp_packet(ssrc, Bytes(20, 1)));
      test::store32(&forged[forged.size() - 14], 0x8000'0000U | ahead);
      const Status wanted = rate != 0 && ahead > 0x8000 ? Status::no_key : Status::auth_failed;
      EXPECT_EQ(pair.receive(forged), wanted) << ahead;
    }
  }
}

TEST(Channel, AnSsrcThatIsRefusedItsKeysIsNotKnown) {
  Pair pair({.key_derivation_rate = 2});
  for (std::uint32_t i = 0; i < 8; ++i) test::prepare(pair.sender, test::rtp_packet(ssrc, i, {}));  // four periods
  EXPECT_EQ(pair.sender.streams(), 1U);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc + 1, 100, {})).prepared, Status::too_many_in_flight);
  EXPECT_EQ(pair.sender.streams(), 1U);
  EXPECT_EQ(pair.lane.pool.used(), 1U);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc + 1, 0, {})).prepared, Status::ok);
  EXPECT_EQ(pair.sender.streams(), 2U);
}

TEST(Channel, SettingsAreChecked) {
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
  EXPECT_EQ(full.error().message, "the table of keys is full: it has capacity for 2");
  EXPECT_EQ(keys->used(), 0U);
}

}  // namespace
}  // namespace sluice::srtp
