// What a channel does with its packets: in flight, replayed, late, of many SSRCs.
#include "media/srtp/channel.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "media/srtp/channel_trial_test.h"
#include "media/srtp/header.h"

namespace sluice::srtp {
namespace {

using test::Bytes;
using test::Flight;
using test::Lane;
using test::Pair;
using test::Secrets;
using test::ssrc;

// Every suite, with CSRCs, extension, MKI and payloads of 0 and more bytes, and every kind of packet that is too short.
TEST(Channel, WhatIsProtectedIsUnprotected) {
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

TEST(Channel, AnyChangedBitIsSeen) {
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

// The same job as prepare() makes of a first packet, and finish() takes it; but nothing has changed before that.
TEST(Channel, PacketsArePreparedBeforeItIsAnybodys) {
  for (const SuiteFacts& suite : suites) {
    for (const Protocol protocol : {Protocol::rtp, Protocol::rtcp}) {
      for (const std::uint32_t roc : {0U, 7U}) {
        SCOPED_TRACE(suite.name);
        Pair pair({.suite = suite.suite, .protocol = protocol}, roc == 0 ? 0 : 4);
        if (roc != 0) {
          ASSERT_EQ(pair.sender.open_stream(ssrc, roc), Status::ok);
          ASSERT_EQ(pair.receiver.open_stream(ssrc, roc), Status::ok);
        }
        const std::uint32_t streams = pair.receiver.streams();
        const Bytes sealed = pair.sealed(protocol == Protocol::rtp ? test::rtp_packet(ssrc, 5, {1, 2})
                                                                   : test::rtcp_packet(ssrc, {1, 2}));
        const auto prepare_unowned = [&](const Bytes& packet) {
          Flight flight;
          flight.bytes = packet;
          flight.bytes.resize(packet.size() + 256);
          const auto length = static_cast<std::uint32_t>(packet.size());
          flight.prepared = std::as_const(pair.receiver)
                                .prepare_unowned({flight.bytes.data(), length, length + 256},
                                                 {.ssrc = ssrc, .roc = roc}, flight.job, flight.pending);
          return flight;
        };
        for (std::size_t length = 0; length < sealed.size(); ++length) {
          const Bytes cut(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(length));
          const Flight refused = prepare_unowned(cut);
          if (refused.prepared == Status::ok) {
            pair.receiver.abandon(refused.pending);  // cut in the payload
          } else {
            ASSERT_NE(pair.receive(cut), Status::ok) << length;
          }
        }
        Flight first = prepare_unowned(sealed), again = prepare_unowned(sealed);
        ASSERT_EQ(first.prepared, Status::ok);
        ASSERT_EQ(again.prepared, Status::ok);
        test::compute(pair.lane, first);
        test::compute(pair.lane, again);
        EXPECT_EQ(pair.receiver.streams(), streams);
        EXPECT_EQ(test::finish(pair.receiver, first), Status::ok);
        EXPECT_EQ(test::finish(pair.receiver, again), Status::replayed);
        EXPECT_EQ(pair.receiver.streams(), 1U);
        EXPECT_EQ(pair.receive(sealed), Status::replayed);
      }
    }
  }
}

TEST(Channel, PacketsThatAreCutShortAreRefusedAtEveryLength) {
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

TEST(Channel, AFrameWithoutCapacityIsRefused) {
  Pair pair;
  Bytes packet = test::rtp_packet(ssrc, 1, Bytes(20));
  crypto::Job job;
  Pending pending;
  const auto length = static_cast<std::uint32_t>(packet.size());
  const auto prepare = [&](std::uint32_t capacity) {
    packet.resize(capacity);
    return pair.sender.prepare({.data = packet.data(), .length = length, .capacity = capacity}, job, pending);
  };
  EXPECT_EQ(prepare(length), Status::no_capacity);
  EXPECT_EQ(prepare(length + pair.sender.overhead() - 1), Status::no_capacity);
  EXPECT_EQ(pair.sender.streams(), 0U);
  EXPECT_EQ(prepare(length + pair.sender.overhead()), Status::ok);
  EXPECT_EQ(pending.length, length + 10);
  Bytes large = test::rtp_packet(ssrc, 2, Bytes(65535 - 12 - 9));
  const auto large_length = static_cast<std::uint32_t>(large.size());
  large.resize(70000);
  EXPECT_EQ(pair.sender.prepare({.data = large.data(), .length = large_length, .capacity = 70000}, job, pending),
            Status::no_capacity);
}

// --- indexes ---

TEST(Channel, TheRolloverCounterFollowsTheSequence) {
  Pair pair;
  for (const std::uint32_t sequence : {65533, 65535, 0, 65534, 2, 1, 30000, 60000, 24000, 54000, 3}) {
    EXPECT_EQ(pair.receive(pair.sealed_rtp(sequence)), Status::ok) << sequence;
  }
}

TEST(Channel, LossReorderingAndRepetition) {
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

TEST(Channel, ProtectNeverUsesAnIndexTwice) {
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
// Whatever overtakes what at the beginning, a receiver by appendix A opens all that is sealed, and nothing is ahead of
// it.
TEST(Channel, TheFirstPacketsMayBeOutOfOrder) {
  struct Case {
    const char* what;
    std::vector<std::uint32_t> sequences;
    std::vector<Status> sealed;
  };
  const auto ok = Status::ok, old = Status::too_old;
  for (const Case& c : {
           Case{"overtaken from behind a wrap", {2, 65535, 3, 4}, {ok, old, ok, ok}},
           Case{"by the first of all", {0, 65535, 1}, {ok, old, ok}},
           Case{"just as far on both sides", {0, 0x8000, 0x8001}, {ok, ok, ok}},
           Case{"a step further", {0, 0x8001, 1}, {ok, old, ok}},
           Case{"in order over the wrap", {65534, 65535, 0, 1}, {ok, ok, ok, ok}},
           Case{"behind the wrap, the older later", {65534, 0, 65535, 1}, {ok, ok, ok, ok}},
           Case{"later on", {65535, 2, 65534, 3}, {ok, ok, ok, ok}},
       }) {
    Pair pair;
    for (std::size_t i = 0; i < c.sequences.size(); ++i) {
      Bytes packet = test::rtp_packet(ssrc, c.sequences[i], {1, 2, 3});
      EXPECT_EQ(test::pass(pair.lane, pair.sender, packet), c.sealed[i]) << c.what << ": " << c.sequences[i];
      if (c.sealed[i] == ok) {
        EXPECT_EQ(pair.receive(packet), ok) << c.what << ": " << c.sequences[i];
      }
    }
  }
}

TEST(Channel, WhatIsWithdrawnHasNeverCome) {
  Pair pair({}, 0, 8);
  const auto begin = [&](std::uint32_t sequence) {
    Flight flight = test::prepare(pair.sender, test::rtp_packet(ssrc, sequence, {1, 2, 3}));
    EXPECT_EQ(flight.prepared, Status::ok) << sequence;
    test::compute(pair.lane, flight);
    return flight;
  };
  EXPECT_EQ(pair.receive(pair.sealed_rtp(1000)), Status::ok);
  for (const std::uint32_t damaged : {1001U, 33000U, 33700U, 1300U}) {
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

TEST(Channel, TheFirstPacketAndRtcpAreMarkedAtOnce) {
  Pair pair, control({.protocol = Protocol::rtcp});
  const auto marks = [](Channel& channel, Bytes packet) {
    const auto length = static_cast<std::uint32_t>(packet.size());
    return channel.marks_at_once({.data = packet.data(), .length = length, .capacity = length});
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

TEST(Channel, ASignalledRolloverCounterIsWhereBothBegin) {
  Pair pair;
  EXPECT_EQ(pair.sender.open_stream(ssrc, 7), Status::ok);
  EXPECT_EQ(pair.sender.open_stream(ssrc, 8), Status::replayed);
  const Bytes sealed = pair.sealed_rtp(1000);
  EXPECT_EQ(pair.receive(sealed), Status::auth_failed);  // knows of no counter
  EXPECT_EQ(pair.receiver.open_stream(ssrc, 7), Status::ok);
  EXPECT_EQ(pair.receive(sealed), Status::ok);
}

TEST(Channel, AnIndexEnds) {
  Pair pair;
  EXPECT_EQ(pair.sender.open_stream(ssrc, 0xffffffff), Status::ok);
  pair.sealed_rtp(65535);
  EXPECT_EQ(test::prepare(pair.sender, test::rtp_packet(ssrc, 0, {})).prepared, Status::key_expired);
}

// --- in flight ---

TEST(Channel, PacketsOfOneStreamMayBeInFlightAcrossAWrapAndFinishInAnyOrder) {
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

TEST(Channel, APacketTwiceInFlightIsFoundAtItsEnd) {
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
TEST(Channel, ForgedPacketsDoNotMoveTheIndex) {
  Pair pair;
  EXPECT_EQ(pair.receive(pair.sealed_rtp(1000)), Status::ok);
  for (const std::uint32_t sequence : {33000, 65000, 30000, 62000, 20000}) {
    Bytes forged = test::rtp_packet(ssrc, sequence, Bytes(30));
    EXPECT_EQ(pair.receive(forged), Status::auth_failed);
  }
  EXPECT_EQ(pair.receive(pair.sealed_rtp(1001)), Status::ok);
}

TEST(Channel, TooManyInFlightAreRefused) {
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

// --- SSRCs ---

TEST(Channel, SsrcsHaveIndexesOfTheirOwnAndAreBounded) {
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

TEST(Channel, AChannelGivesBackWhatItTook) {
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

}  // namespace
}  // namespace sluice::srtp
