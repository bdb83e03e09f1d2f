// What a channel does with its packets: in flight, replayed, late, of many SSRCs, under keys that end or change.
#include "media/srtp/channel.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "media/srtp/channel_trial_test.h"
#include "media/srtp/header.h"
#include "media/srtp/key_derivation.h"

namespace sluice::srtp {
namespace {

using test::Bytes;
using test::Flight;
using test::Lane;
using test::Secrets;

constexpr std::uint32_t ssrc = 0xcafebabe;

// Both ends of one direction.
struct Pair {
  explicit Pair(ChannelSettings settings = {}, std::size_t mki_length = 0, std::uint64_t lifetime = 0)
      : secrets(random, settings.suite, mki_length),
        sender(make(settings, Direction::protect, lifetime)),
        receiver(make(settings, Direction::unprotect, 0)) {}

  Channel make(ChannelSettings settings, Direction direction, std::uint64_t lifetime) {
    settings.direction = direction;
    const MasterKey master = secrets.view(lifetime);
    auto channel = Channel::make(settings, {&master, 1}, lane.keys, lane.pool);
    EXPECT_TRUE(channel) << channel.error().message;
    return std::move(*channel);
  }
  Bytes sealed(const Bytes& plain) {
    Bytes packet = plain;
    EXPECT_EQ(test::pass(lane, sender, packet), Status::ok);
    return packet;
  }
  Bytes sealed_rtp(std::uint32_t sequence, std::uint32_t of = ssrc) {
    return sealed(test::rtp_packet(of, sequence, {1, 2, 3}));
  }
  Status receive(Bytes packet) { return test::pass(lane, receiver, packet); }

  std::mt19937 random{1};
  Lane lane;
  Secrets secrets;
  Channel sender;
  Channel receiver;
};

// Every suite, with CSRCs, extension, MKI and payloads of 0 and more bytes, and every kind of packet that is too short.
TEST(Channel, what_is_protected_is_unprotected) {
  for (const SuiteFacts& suite : suites) {
    for (const Protocol protocol : {Protocol::rtp, Protocol::rtcp}) {
      for (const std::size_t mki_length : {0, 1, 4, 128}) {
        Pair pair({.suite = suite.suite, .protocol = protocol}, mki_length);
        for (std::uint32_t i = 0; i < 40; ++i) {
          const Bytes payload = test::random_bytes(pair.random, i < 20 ? i : pair.random() % 1400);
          Bytes plain =
              protocol == Protocol::rtp ? test::rtp_packet(ssrc, i, payload) : test::rtcp_packet(ssrc, payload);
          if (protocol == Protocol::rtp && i % 3 == 0) {
            plain[0] |= 0x12;
            const Bytes more = {0, 0, 0, 1, 0, 0, 0, 2, 0xbe, 0xde, 0, 1, 9, 9, 9, 9};
            plain.insert(plain.begin() + 12, more.begin(), more.end());
          }
          const Bytes sealed = pair.sealed(plain);
          ASSERT_EQ(sealed.size(), plain.size() + pair.sender.overhead());
          Bytes opened = sealed;
          ASSERT_EQ(test::pass(pair.lane, pair.receiver, opened), Status::ok) << suite.name;
          ASSERT_EQ(opened, plain) << suite.name;
          ASSERT_EQ(pair.receive(sealed), Status::replayed);
        }
      }
    }
  }
}

TEST(Channel, any_changed_bit_is_seen) {
  for (const SuiteFacts& suite : suites) {
    for (const Protocol protocol : {Protocol::rtp, Protocol::rtcp}) {
      Pair pair({.suite = suite.suite, .protocol = protocol});
      const Bytes plain =
          protocol == Protocol::rtp ? test::rtp_packet(ssrc, 5, Bytes(30, 7)) : test::rtcp_packet(ssrc, Bytes(30, 7));
      const Bytes sealed = pair.sealed(plain);
      for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
        Bytes changed = sealed;
        changed[bit / 8] ^= 1U << bit % 8;
        const Status status = pair.receive(changed);
        if (bit < 16) {  // version, CSRCs and extension, the packet type
          ASSERT_NE(status, Status::ok) << suite.name << " bit " << bit;
        } else {
          ASSERT_EQ(status, Status::auth_failed) << suite.name << " bit " << bit;
        }
      }
      EXPECT_EQ(pair.receiver.streams(), 0U);  // forged packets leave nothing behind
      EXPECT_EQ(pair.receive(sealed), Status::ok);
    }
  }
}

TEST(Channel, packets_that_are_cut_short_are_refused_at_every_length) {
  for (const SuiteFacts& suite : suites) {
    for (const Protocol protocol : {Protocol::rtp, Protocol::rtcp}) {
      Pair pair({.suite = suite.suite, .protocol = protocol}, 4);
      const Bytes plain = protocol == Protocol::rtp ? test::rtp_packet(ssrc, 5, {}) : test::rtcp_packet(ssrc, {});
      const Bytes sealed = pair.sealed(plain);
      for (std::size_t length = 0; length < sealed.size(); ++length) {
        const Bytes cut(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(length));
        ASSERT_EQ(pair.receive(cut), Status::too_short) << suite.name << ' ' << length;
      }
      EXPECT_EQ(pair.receive(sealed), Status::ok);
    }
  }
}

TEST(Channel, a_frame_without_room_is_refused) {
  Pair pair;
  Bytes packet = test::rtp_packet(ssrc, 1, Bytes(20));
  crypto::Job job;
  Pending pending;
  const auto length = static_cast<std::uint32_t>(packet.size());
  const auto prepare = [&](std::uint32_t room) {
    packet.resize(room);
    return pair.sender.prepare({.data = packet.data(), .length = length, .room = room}, job, pending);
  };
  EXPECT_EQ(prepare(length), Status::no_room);
  EXPECT_EQ(prepare(length + pair.sender.overhead() - 1), Status::no_room);
  EXPECT_EQ(pair.sender.streams(), 0U);
  EXPECT_EQ(prepare(length + pair.sender.overhead()), Status::ok);
  EXPECT_EQ(pending.length, length + 10);
  Bytes large = test::rtp_packet(ssrc, 2, Bytes(65535 - 12 - 9));
  const auto large_length = static_cast<std::uint32_t>(large.size());
  large.resize(70000);
  EXPECT_EQ(pair.sender.prepare({.data = large.data(), .length = large_length, .room = 70000}, job, pending),
            Status::no_room);
}

// -- indexes
// ---------------------------------------------------------------------------------------------------------------

TEST(Channel, the_rollover_counter_follows_the_sequence) {
  Pair pair;
  for (const std::uint32_t sequence : {65533, 65535, 0, 65534, 2, 1, 30000, 60000, 24000, 54000, 3}) {
    EXPECT_EQ(pair.receive(pair.sealed_rtp(sequence)), Status::ok) << sequence;
  }
}

TEST(Channel, loss_reordering_and_repetition) {
  Pair pair;
  std::vector<Bytes> sent;
  for (std::uint32_t i = 0; i < 600; ++i) {
    sent.push_back(pair.sealed_rtp(65300 + i));
  }
  EXPECT_EQ(pair.receive(sent[0]), Status::ok);
  EXPECT_EQ(pair.receive(sent[300]), Status::ok);  // 299 lost, across the wrap
  EXPECT_EQ(pair.receive(sent[173]), Status::ok);  // the last that the window of 128 still holds
  EXPECT_EQ(pair.receive(sent[172]), Status::too_old);
  EXPECT_EQ(pair.receive(sent[173]), Status::replayed);
  EXPECT_EQ(pair.receive(sent[300]), Status::replayed);
  EXPECT_EQ(pair.receive(sent[299]), Status::ok);
  EXPECT_EQ(pair.receive(sent[599]), Status::ok);
  EXPECT_EQ(pair.receive(sent[300]), Status::too_old);
}

TEST(Channel, protect_never_uses_an_index_twice) {
  Pair pair;
  Flight first = test::prepare(pair.sender, test::rtp_packet(ssrc, 9, {1}));
  EXPECT_EQ(first.prepared, Status::ok);
  pair.sender.abandon(first.pending);  // dropped on the way: its keystream is spent all the same
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 9, {2})).prepared, Status::replayed);
  Flight far = test::prepare(pair.sender, test::rtp_packet(ssrc, 500, {2}));
  Flight near = test::prepare(pair.sender, test::rtp_packet(ssrc, 501, {2}));
  Flight again = test::prepare(pair.sender, test::rtp_packet(ssrc, 501, {3}));
  for (Flight* flight : {&far, &near, &again}) {
    ASSERT_EQ(flight->prepared, Status::ok);
    test::compute(pair.lane, *flight);
  }
  EXPECT_EQ(test::finish(pair.sender, far), Status::ok);
  EXPECT_EQ(test::finish(pair.sender, near), Status::ok);
  EXPECT_EQ(test::finish(pair.sender, again), Status::replayed) << "both were in flight";
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 10, {2})).prepared, Status::too_old);
  first = test::prepare(pair.sender, test::rtp_packet(ssrc, 502, {1}));
  pair.sender.abandon(first.pending);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 502, {2})).prepared, Status::replayed);
}

// However far ahead a damaged sequence number is, and with others in flight; the lifetime is whole.
TEST(Channel, what_is_withdrawn_has_never_come) {
  Pair pair({}, 0, 8);
  const auto begin = [&](std::uint32_t sequence) {
    Flight flight = test::prepare(pair.sender, test::rtp_packet(ssrc, sequence, {1, 2, 3}));
    EXPECT_EQ(flight.prepared, Status::ok) << sequence;
    test::compute(pair.lane, flight);
    return flight;
  };
  EXPECT_EQ(pair.receive(pair.sealed_rtp(1000)), Status::ok);
  for (const std::uint32_t damaged : {1001U, 33000U, 62000U, 1300U}) {
    Flight wrong = begin(damaged);
    pair.sender.withdraw(wrong.pending);
  }
  Flight one = begin(1001), wrong = begin(20000), two = begin(1002);
  EXPECT_EQ(test::finish(pair.sender, one), Status::ok);
  pair.sender.withdraw(wrong.pending);
  EXPECT_EQ(test::finish(pair.sender, two), Status::ok);
  EXPECT_EQ(pair.receive(one.bytes), Status::ok);
  EXPECT_EQ(pair.receive(two.bytes), Status::ok);
  for (std::uint32_t sequence = 1003; sequence < 1008; ++sequence) {
    EXPECT_EQ(pair.receive(pair.sealed_rtp(sequence)), Status::ok);
  }
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 1008, {})).prepared, Status::key_expired)
      << "eight have gone";
}

TEST(Channel, the_first_packet_and_rtcp_are_marked_at_once) {
  Pair pair, control({.protocol = Protocol::rtcp});
  const auto marks = [](Channel& channel, Bytes packet) {
    const auto length = static_cast<std::uint32_t>(packet.size());
    return channel.marks_at_once({.data = packet.data(), .length = length, .room = length});
  };
  for (const std::uint32_t of : {ssrc, ssrc + 1}) {
    EXPECT_TRUE(marks(pair.sender, test::rtp_packet(of, 65535, {})));
    const Flight first = test::prepare(pair.sender, test::rtp_packet(of, 65535, {}));
    EXPECT_TRUE(first.pending.marked);
    EXPECT_FALSE(marks(pair.sender, test::rtp_packet(of, 0, {})));
    const Flight second = test::prepare(pair.sender, test::rtp_packet(of, 0, {}));
    EXPECT_FALSE(second.pending.marked);
    EXPECT_EQ(second.pending.index, 65536U) << "behind the wrap, with the first in flight";
  }
  EXPECT_FALSE(marks(pair.receiver, test::rtp_packet(ssrc, 1, {})));
  for (std::uint64_t index = 0; index < 3; ++index) {
    EXPECT_TRUE(marks(control.sender, test::rtcp_packet(ssrc, {})));
    const Flight flight = test::prepare(control.sender, test::rtcp_packet(ssrc, {}));
    EXPECT_TRUE(flight.pending.marked);
    EXPECT_EQ(flight.pending.index, index);
  }
}

TEST(Channel, a_signalled_rollover_counter_is_where_both_begin) {
  Pair pair;
  EXPECT_EQ(pair.sender.open_stream(ssrc, 7), Status::ok);
  EXPECT_EQ(pair.sender.open_stream(ssrc, 8), Status::replayed);
  const Bytes sealed = pair.sealed_rtp(1000);
  EXPECT_EQ(pair.receive(sealed), Status::auth_failed);  // knows of no counter
  EXPECT_EQ(pair.receiver.open_stream(ssrc, 7), Status::ok);
  EXPECT_EQ(pair.receive(sealed), Status::ok);
}

TEST(Channel, an_index_ends) {
  Pair pair;
  EXPECT_EQ(pair.sender.open_stream(ssrc, 0xffffffff), Status::ok);
  pair.sealed_rtp(65535);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 0, {})).prepared, Status::key_expired);
}

// -- in flight
// -------------------------------------------------------------------------------------------------------------

TEST(Channel, packets_of_one_stream_may_be_in_flight_across_a_wrap_and_finish_in_any_order) {
  Pair pair;
  EXPECT_EQ(pair.receive(pair.sealed_rtp(65000)), Status::ok);
  std::vector<Flight> flights;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    flights.push_back(test::prepare(pair.receiver, pair.sealed_rtp(65001 + i)));
    ASSERT_EQ(flights.back().prepared, Status::ok);
  }
  for (std::size_t i = 0; i < flights.size(); i += 2) {  // pairs change places
    for (const std::size_t k : {i + 1, i}) {
      test::compute(pair.lane, flights[k]);
      ASSERT_EQ(test::finish(pair.receiver, flights[k]), Status::ok) << k;
    }
  }
}

TEST(Channel, a_packet_twice_in_flight_is_found_at_its_end) {
  Pair pair;
  const Bytes packet = pair.sealed_rtp(7);
  for (const bool known : {false, true}) {
    const Bytes twice = known ? pair.sealed_rtp(8) : packet;
    Flight one = test::prepare(pair.receiver, twice);
    Flight two = test::prepare(pair.receiver, twice);
    ASSERT_EQ(one.prepared, Status::ok);
    ASSERT_EQ(two.prepared, Status::ok);
    test::compute(pair.lane, one);
    test::compute(pair.lane, two);
    EXPECT_EQ(test::finish(pair.receiver, two), Status::ok);
    EXPECT_EQ(test::finish(pair.receiver, one), Status::replayed);
  }
  EXPECT_EQ(pair.receiver.streams(), 1U);
}

// However far ahead their sequence numbers are: only what is authenticated moves the index.
TEST(Channel, forged_packets_do_not_move_the_index) {
  Pair pair;
  EXPECT_EQ(pair.receive(pair.sealed_rtp(1000)), Status::ok);
  for (const std::uint32_t sequence : {33000, 65000, 30000, 62000, 20000}) {
    Bytes forged = test::rtp_packet(ssrc, sequence, Bytes(30));
    EXPECT_EQ(pair.receive(forged), Status::auth_failed);
  }
  EXPECT_EQ(pair.receive(pair.sealed_rtp(1001)), Status::ok);
}

TEST(Channel, too_many_in_flight_are_refused) {
  Pair pair;
  EXPECT_EQ(pair.receive(pair.sealed_rtp(0)), Status::ok);
  std::deque<Flight> flights;
  const Bytes sealed = pair.sealed_rtp(1);
  for (std::uint32_t i = 0; i < max_in_flight; ++i) {
    flights.push_back(test::prepare(pair.receiver, sealed));
    ASSERT_EQ(flights.back().prepared, Status::ok);
  }
  EXPECT_EQ(test::prepare(pair.receiver, sealed).prepared, Status::too_many_in_flight);
  pair.receiver.abandon(flights.back().pending);
  EXPECT_EQ(test::prepare(pair.receiver, sealed).prepared, Status::ok);

  flights.clear();
  for (std::uint32_t i = 0; i < max_in_flight; ++i) {
    flights.push_back(test::prepare(pair.sender, test::rtp_packet(ssrc, 2 + i, {})));
    ASSERT_EQ(flights.back().prepared, Status::ok);
  }
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 20000, {})).prepared, Status::too_many_in_flight);
  pair.sender.withdraw(flights.back().pending);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 20000, {})).prepared, Status::ok);
}

// -- SSRCs
// -----------------------------------------------------------------------------------------------------------------

TEST(Channel, ssrcs_have_indexes_of_their_own_and_are_bounded) {
  Pair pair({.max_streams = 3});
  for (std::uint32_t i = 0; i < 30; ++i) {
    for (std::uint32_t of = 1; of <= 3; ++of) {
      EXPECT_EQ(pair.receive(pair.sealed_rtp(of * 20000 + i * 3000, of)), Status::ok) << of << ' ' << i;
    }
  }
  EXPECT_EQ(pair.sender.streams(), 3U);
  EXPECT_EQ(pair.receiver.streams(), 3U);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(4, 0, {})).prepared, Status::no_stream);

  Channel wider = pair.make({.max_streams = 4}, Direction::protect, 0);
  Bytes fourth = test::rtp_packet(4, 0, {1});
  ASSERT_EQ(test::pass(pair.lane, wider, fourth), Status::ok);
  EXPECT_EQ(pair.receive(fourth), Status::no_stream);
}

TEST(Channel, a_channel_gives_back_what_it_took) {
  Lane lane;
  std::mt19937 random(1);
  const Secrets secrets(random, Suite::aead_aes_256_gcm);
  const MasterKey master = secrets.view();
  {
    auto channel = Channel::make({.suite = Suite::aead_aes_256_gcm}, {&master, 1}, lane.keys, lane.pool);
    ASSERT_TRUE(channel);
    for (std::uint32_t i = 0; i < 5; ++i) {
      EXPECT_EQ(channel->open_stream(i, 0), Status::ok);
    }
    Channel moved = std::move(*channel);
    EXPECT_EQ(channel->streams(), 0U);
    EXPECT_EQ(lane.pool.used(), 5U);
    EXPECT_EQ(lane.keys.used(), 1U);
    auto other = Channel::make({.suite = Suite::aead_aes_256_gcm}, {&master, 1}, lane.keys, lane.pool);
    moved = std::move(*other);
    EXPECT_EQ(lane.pool.used(), 0U);
    EXPECT_EQ(lane.keys.used(), 1U);
    EXPECT_EQ(moved.open_stream(1, 0), Status::ok);
    moved.end_streams();
    EXPECT_EQ(lane.pool.used(), 0U);
    EXPECT_EQ(lane.keys.used(), 1U);
  }
  EXPECT_EQ(lane.keys.used(), 0U);
}

// -- keys
// ------------------------------------------------------------------------------------------------------------------

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
