// What waits in a TCP stream and is released by one packet: the sink may have no time for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "flow/tcp_stream_trial_test.h"

namespace sluice::flow {
namespace {

using test::down, test::up;
using test::Rig;

constexpr std::uint32_t size = 100;
constexpr std::size_t block = 256;

// Wait for the byte before them.
void let_wait(Rig& rig, std::uint32_t segments) {
  for (std::uint32_t i = 0; i < segments; ++i) {
    rig.at(1 + i * size, std::string(size, static_cast<char>('a' + i % 26)));
  }
}

TEST(TcpWaiting, EachPieceIsAskedForAndNoneThatComesInOrder) {
  Rig rig;
  rig.at(0, "x");
  EXPECT_EQ(rig.sink.asked, 0U);
  rig.at(3, "c");
  rig.at(2, "b");
  rig.at(1, "a");
  EXPECT_EQ(rig.sink.asked, 2U);
  EXPECT_EQ(rig.got(), "xabc");
}

TEST(TcpWaiting, WhatTheSinkHasNoTimeForIsAGapAndTheStreamGoesOnBehindIt) {
  for (const bool guards : {false, true}) {
    SCOPED_TRACE(guards);
    Rig rig(guards ? test::guarded() : StreamSettings());
    let_wait(rig, 10);
    rig.at(1 + 12 * size, "behind a hole");
    rig.sink.takes = 3;
    rig.at(0, "x");
    EXPECT_EQ(rig.got().size(), 1 + 3 * size);
    EXPECT_EQ(rig.sink.asked, 4U);
    EXPECT_EQ(rig.sink.gaps, std::vector<std::uint64_t>{9 * size + 13}) << "with the hole";
    EXPECT_EQ(rig.reassembler.counters().thrown_away, 8U);
    EXPECT_EQ(rig.reassembler.counters().gap_bytes, 9 * size + 13);
    rig.at(1 + 12 * size + 13, "goes on", tcp_fin);
    EXPECT_TRUE(rig.got().ends_with("goes on"));
    EXPECT_EQ(rig.sink.closes, "u");
  }
}

TEST(TcpWaiting, AFinThatCameWithWhatIsThrownAwayClosesItsDirection) {
  Rig rig;
  rig.at(1, "waits", tcp_fin);
  rig.sink.takes = 0;
  rig.at(0, "x");
  EXPECT_EQ(rig.sink.closes, "u");
  EXPECT_EQ(rig.got(), "x");
}

TEST(TcpWaiting, AResetThrowsAwayWhatThereIsNoTimeForInBothDirections) {
  Rig rig;
  let_wait(rig, 10);
  for (std::uint32_t i = 0; i < 10; ++i) rig.send(down, tcp_ack, 5002 + i * size, 1001, std::string(size, 'd'));
  rig.sink.takes = 0;
  rig.at(0, "", tcp_rst);
  EXPECT_EQ(rig.sink.asked, 2U);
  EXPECT_EQ(rig.reassembler.counters().thrown_away, 20U);
  EXPECT_EQ(rig.sink.closes, "ud");
}

// A few blocks with each packet: throwing away costs the packet that does it nothing.
TEST(TcpWaiting, MemoryOfWhatIsThrownAwayIsGivenBackBitByBit) {
  constexpr std::uint32_t segments = 100;
  Rig rig;
  let_wait(rig, segments);
  rig.sink.takes = 0;
  rig.at(0, "x");
  EXPECT_GE(rig.pool.in_use(), segments * block);
  std::size_t before = rig.pool.in_use();
  unsigned packets = 0;
  for (; packets < segments; ++packets) {
    rig.ack(0);
    if (rig.pool.in_use() == before) break;
    EXPECT_EQ(before - rig.pool.in_use(), 4 * block + (packets + 1 == segments / 4 ? 2048 : 0))
        << "the last: their list";
    before = rig.pool.in_use();
  }
  EXPECT_EQ(packets, segments / 4);
  EXPECT_LT(rig.pool.in_use(), segments * block);
}

TEST(TcpWaiting, MemoryOfWhatIsThrownAwayIsThereForWhoNeedsIt) {
  StreamSettings settings = test::guarded();
  settings.held_bytes = settings.held_segments = 1U << 20;
  Rig rig(settings, 1001, 1U << 20);
  const auto fills = static_cast<std::uint32_t>(rig.pool.capacity() / 2 / block);
  constexpr std::uint32_t other = 1'000'000;
  for (std::uint32_t i = 0; i < fills; ++i) ASSERT_TRUE(rig.at(1 + i * size, std::string(size, 'a'))) << i;
  EXPECT_EQ(rig.put(1 + other, "b"), Taken::no_capacity);
  rig.sink.takes = 0;
  rig.at(0, "x");
  for (std::uint32_t i = 0; i < 8; ++i) rig.ack(0);
  EXPECT_EQ(rig.put(1 + fills * size + 10, "b"), Taken::all);
  std::vector<std::uint8_t*> taken;
  while (std::uint8_t* const one = rig.pool.take(block)) taken.push_back(one);
  EXPECT_EQ(rig.put(1 + fills * size + 12, "c"), Taken::all) << "of what is not given back yet";
  for (std::uint8_t* const one : taken) rig.pool.give(one);
}

// Whatever comes first: each byte waits once, the first that came.
TEST(TcpWaiting, SegmentsWaitInOrderHoweverTheyCome) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string sent(20'000, ' ');
    for (char& byte : sent) byte = static_cast<char>('a' + random() % 26);
    Rig rig(seed % 2 == 0 ? test::guarded() : StreamSettings());
    std::string waits(sent.size(), '\0');
    for (unsigned i = 0; i < 120; ++i) {
      const std::size_t at = 1 + random() % (sent.size() - 1);
      const std::size_t length = std::min<std::size_t>(1 + random() % 400, sent.size() - at);
      rig.at(static_cast<std::uint32_t>(at), sent.substr(at, length));
      waits.replace(at, length, sent.substr(at, length));
      const auto all =
          static_cast<std::uint32_t>(waits.size() - static_cast<std::size_t>(std::ranges::count(waits, '\0')));
      ASSERT_EQ(rig.stream.sides[0].held_bytes, all);
    }
    EXPECT_EQ(rig.reassembler.counters().conflicts, 0U);
    const std::size_t next = waits.find('\0', 1);
    rig.at(0, sent.substr(0, 1));
    EXPECT_EQ(rig.got(), sent.substr(0, next));
    for (std::size_t at = 0; at < sent.size(); at += 500) rig.at(static_cast<std::uint32_t>(at), sent.substr(at, 500));
    EXPECT_EQ(rig.got(), sent);
    EXPECT_EQ(rig.stream.sides[0].held_bytes, 0U);
  }
}

TEST(TcpWaiting, WhatAPacketMayReleaseIsKnownAhead) {
  Rig rig;
  let_wait(rig, 10);
  for (std::uint32_t i = 0; i < 5; ++i) rig.send(down, tcp_ack, 5002 + i * size, 1001, std::string(size, 'd'));
  const auto releases = [&](Direction direction, std::uint32_t sequence, std::uint32_t acknowledgment,
                            std::string_view payload) {
    return Reassembler::may_release(rig.stream, direction,
                                    test::tcp(1, 1000, direction, tcp_ack, sequence, acknowledgment, payload));
  };
  EXPECT_EQ(releases(up, 1001, 5001, "").segments, 0U);
  EXPECT_EQ(releases(up, 1001, 5001, "x").segments, 10U);
  EXPECT_EQ(releases(up, 1001, 5001, "x").bytes, 10 * size);
  EXPECT_EQ(releases(up, 1000, 5001, "x").segments, 0U) << "old";
  EXPECT_EQ(releases(up, 1002, 5001, "x").segments, 0U) << "waits, too";
  EXPECT_EQ(releases(up, 1001, 5002, "").segments, 0U) << "the receiver has not what waits";
  EXPECT_EQ(releases(up, 1001, 5003, "").segments, 5U);
  EXPECT_EQ(releases(up, 1001, 5003, "x").segments, 15U);
  EXPECT_EQ(releases(down, 5001, 1003, "x").segments, 15U);
}

}  // namespace
}  // namespace sluice::flow
