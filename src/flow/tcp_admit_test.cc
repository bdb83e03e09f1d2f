// What reaches the receiver of a stream that is guarded: what was inspected, or nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "flow/tcp_stream_trial_test.h"

namespace sluice::flow {
namespace {

using test::Bytes;
using test::guarded;
using test::Rig;
using test::tcp;
constexpr Direction up = test::up, down = test::down;

// A host that can send with the receiver's address makes no hole in what is inspected by it.
TEST(TcpAdmit, AnAcknowledgmentOfWhatHasNotComeMakesNoGap) {
  Rig rig(guarded());
  rig.put(0, "GET ");
  rig.ack(4);
  rig.ack(50'000);
  EXPECT_EQ(rig.put(10, "SECOND"), Taken::all);
  EXPECT_EQ(rig.put(4, "FIRST-"), Taken::all);
  EXPECT_EQ(rig.got(), "GET FIRST-SECOND");
  EXPECT_TRUE(rig.sink.gaps.empty());
}

// What a decoy of a sender hides: it does not reach the receiver, and the true segment must not either.
TEST(TcpAdmit, ASegmentWithOtherBytesIsRefusedWhereTheReceiverMayTakeThem) {
  struct Segment {
    std::uint32_t at;
    const char* bytes;
    Taken taken;
    std::uint8_t flags = 0;
    std::uint32_t acked = 0;  // the server has so much, before it
  };
  struct Case {
    const char* what;
    std::vector<Segment> segments;
    const char* wanted;
    std::uint64_t conflicts;
  };
  constexpr Taken all = Taken::all, part = Taken::part, conflict = Taken::conflict;
  const Case cases[] = {
      {"a decoy, then the attack", {{0, "junk", all}, {0, "evil", conflict}, {0, "junk", all}}, "junk", 1},
      {"the attack in a longer one", {{0, "junk", all}, {0, "evil and more", conflict}, {4, "!", all}}, "junk!", 1},
      {"the attack byte by byte", {{0, "j", all}, {0, "e", conflict}, {1, "u", all}, {1, "v", conflict}}, "ju", 2},
      {"the same bytes, coalesced", {{0, "ab", all}, {2, "cd", all}, {0, "abcd", all}, {1, "bcdef", all}}, "abcdef", 0},
      {"other bytes of which one is acknowledged", {{0, "abcd", all}, {0, "XXcd", conflict, 0, 1}}, "abcd", 1},
      {"other bytes that are all acknowledged", {{0, "abcd", all}, {0, "XXcdef", part, 0, 2}}, "abcdef", 1},
      {"a keep-alive with garbage", {{0, "abcd", all}, {3, "?", all, 0, 4}, {4, "ef", all}}, "abcdef", 0},
      {"a keep-alive's place before it is acknowledged",
       {{0, "abcd", all}, {3, "?", conflict}, {4, "e", all}},
       "abcde",
       1},
      {"other bytes than what waits", {{2, "cd", all}, {1, "bXX", conflict}, {0, "ab", all}}, "abcd", 1},
      {"and around what waits", {{2, "cd", all}, {0, "abXXef", conflict}, {0, "ab", all}}, "abcd", 1},
      {"the same around what waits", {{2, "cd", all}, {0, "abcdef", all}}, "abcdef", 0},
      {"behind a FIN in order", {{0, "ab", all, tcp_fin}, {2, "cd", conflict}, {0, "abcd", conflict}}, "ab", 2},
      {"a FIN with other bytes is none", {{0, "ab", all}, {0, "XX", conflict, tcp_fin}, {2, "cd", all}}, "abcd", 1},
      {"a FIN again", {{0, "ab", all, tcp_fin}, {0, "ab", all, tcp_fin}, {2, "", all, tcp_fin}}, "ab", 0},
  };
  for (const Case& c : cases) {
    Rig rig(guarded());
    for (const Segment& segment : c.segments) {
      if (segment.acked != 0) {
        rig.ack(segment.acked);
      }
      EXPECT_EQ(rig.put(segment.at, segment.bytes, segment.flags), segment.taken)
          << c.what << " at " << segment.at << ": " << segment.bytes;
    }
    EXPECT_EQ(rig.got(), c.wanted) << c.what;
    EXPECT_EQ(rig.reassembler.counters().conflicts, c.conflicts) << c.what;
    EXPECT_EQ(rig.reassembler.counters().not_compared, 0U) << c.what;
  }
}

// Half of all sequences away: which of two is the later one is no order any more.
TEST(TcpAdmit, SequencesThatAreMadeUpAreComparedWithNothing) {
  for (const bool has_history : {false, true}) {
    Rig rig(guarded());
    if (has_history) rig.at(0, "abcdef");
    const std::uint32_t next = has_history ? 6 : 0;
    for (const std::uint32_t away : {0x7fffffe0U, 0x7ffffff6U, 0x7fffffffU, 0x80000000U, 0x8000000aU, 0xc0000000U}) {
      rig.put(next + away, "0123456789012345678901");
      rig.put(next + away, "0123456789012345678901");
    }
    rig.put(next, "more");
    EXPECT_EQ(rig.got(), has_history ? "abcdefmore" : "more");
    EXPECT_EQ(rig.reassembler.counters().conflicts, 0U);
  }
}

// Far beyond the window: what is not acknowledged is kept, and given back when it is.
TEST(TcpAdmit, BytesAreKeptUntilTheyAreAcknowledged) {
  StreamSettings settings = guarded();
  settings.window = 64;
  Rig rig(settings, 0xffff0000U, 4U << 20);
  const auto text = [](std::uint32_t at) { return std::string(1000, static_cast<char>('a' + at / 1000 % 26)); };
  for (std::uint32_t at = 0; at < 200'000; at += 1000) {
    ASSERT_EQ(rig.put(at, text(at)), Taken::all) << at;
  }
  EXPECT_GE(rig.pool.in_use(), 200'000U);
  for (const std::uint32_t at : {0U, 1000U, 77'000U, 199'000U}) {
    EXPECT_EQ(rig.put(at, text(at + 1000)), Taken::conflict) << at;
    EXPECT_EQ(rig.put(at, text(at)), Taken::all) << at;
  }
  EXPECT_EQ(rig.put(500, text(0).substr(500) + text(1000)), Taken::all) << "with other boundaries";
  rig.ack(78'000);
  EXPECT_EQ(rig.put(77'000, text(78'000)), Taken::part) << "no receiver takes it";
  EXPECT_EQ(rig.put(78'000, text(77'000)), Taken::conflict);
  rig.ack(200'000);
  EXPECT_LE(rig.pool.in_use(), 512U);
  EXPECT_EQ(rig.put(200'000, "more"), Taken::all);
  EXPECT_EQ(rig.sink.windows.back(), std::string(64, text(199'000)[0]) + "more");
}

TEST(TcpAdmit, BehindTheDepthWhatCameBeforeItIsKeptUntilItIsAcknowledged) {
  StreamSettings settings = guarded();
  settings.depth = 6;
  Rig rig(settings);
  rig.at(0, "abcd");
  EXPECT_EQ(rig.put(4, "efgh"), Taken::part);
  EXPECT_EQ(rig.put(8, "ijkl"), Taken::part);
  EXPECT_EQ(rig.put(2, "XXXXXX"), Taken::conflict);
  EXPECT_EQ(rig.put(20, "far"), Taken::part) << "it would never be delivered: it does not wait";
  EXPECT_EQ(rig.stream.sides[0].held_count, 0U);
  rig.ack(12);
  EXPECT_EQ(rig.pool.in_use(), 0U);
  EXPECT_EQ(rig.put(2, "XX"), Taken::all);
}

// Behind the depth nothing is delivered, so nothing is missing, and nothing is refused, however long it goes on.
TEST(TcpAdmit, ALongTransferGoesOnBehindTheDepth) {
  StreamSettings settings = guarded();
  settings.depth = 6;
  Rig rig(settings, 77);
  rig.at(0, "abcdef");
  constexpr std::uint32_t step = 3U << 28;
  std::uint32_t at = 6;
  for (int i = 0; i < 12; ++i, at += step) {
    rig.ack(at);
    EXPECT_EQ(rig.put(at, "xyz"), Taken::part) << i;
    EXPECT_EQ(rig.put(at, "xyz"), Taken::part) << i;
    EXPECT_EQ(rig.put(at + 3, "!"), Taken::part) << i;
  }
  EXPECT_EQ(rig.got(), "abcdef");
  EXPECT_EQ(rig.reassembler.counters().gaps, 0U);
  EXPECT_EQ(rig.reassembler.counters().refused, 0U);
}

TEST(TcpAdmit, WithoutCapacityToWaitASegmentIsRefusedAndNoGapIsMade) {
  StreamSettings by_count = guarded(), by_bytes = guarded();
  by_count.held_segments = 3;
  by_bytes.held_bytes = 6;
  for (const StreamSettings& settings : {by_count, by_bytes}) {
    Rig rig(settings);
    for (const std::uint32_t at : {10U, 20U, 30U}) {
      EXPECT_EQ(rig.put(at, "ab"), Taken::all);
    }
    EXPECT_EQ(rig.put(40, "ab"), Taken::no_capacity);
    EXPECT_EQ(rig.put(20, "ab"), Taken::all) << "what waits already";
    EXPECT_EQ(rig.put(20, "XX"), Taken::conflict);
    EXPECT_EQ(rig.put(0, "0123456789"), Taken::all) << "in order";
    EXPECT_EQ(rig.put(40, "ab"), Taken::all) << "sent again, with the hole filled";
    EXPECT_EQ(rig.reassembler.counters().gaps, 0U);
    EXPECT_EQ(rig.reassembler.counters().not_held, 1U);
    EXPECT_EQ(rig.reassembler.counters().refused, 2U);
    EXPECT_EQ(rig.got(), "0123456789ab");
  }
}

// Where the depth lies behind it, what is far ahead would go by the stream: its sender sends it again.
TEST(TcpAdmit, TooFarAheadIsRefusedUnlessItIsBehindTheDepth) {
  struct Case {
    std::uint64_t depth;
    bool drop;
    Taken taken;
  };
  for (const Case& c : {Case{0, true, Taken::no_capacity}, Case{5000, true, Taken::no_capacity},
                        Case{1500, true, Taken::part}, Case{0, false, Taken::part}}) {
    StreamSettings settings = guarded();
    settings.drop_without_capacity = c.drop;
    settings.depth = c.depth;
    settings.ahead = 1000;
    Rig rig(settings);
    EXPECT_EQ(rig.put(1000, "?"), Taken::all) << c.depth;
    EXPECT_EQ(rig.put(1500, "TACK"), c.taken) << c.depth;
    EXPECT_EQ(rig.reassembler.counters().too_far, c.taken == Taken::no_capacity || !c.drop ? 1U : 0U) << c.depth;
    EXPECT_EQ(rig.stream.sides[0].held_count, 1U) << "what will not be delivered does not wait";
    if (c.taken != Taken::no_capacity) continue;
    const std::string filler(1000, 'a');
    EXPECT_EQ(rig.put(0, filler), Taken::all);
    EXPECT_EQ(rig.put(1500, "TACK"), Taken::all) << "sent again";
    EXPECT_EQ(rig.put(1000, "?" + std::string(497, 'a') + "AT"), Taken::all);
    EXPECT_TRUE(rig.sink.windows.back().ends_with("ATTACK"));
  }
}

// Who sends much out of order takes half of the pool, and other streams go on.
TEST(TcpAdmit, WhatWaitsTakesHalfOfThePoolAtTheMost) {
  BlockPool pool(1U << 20);
  Reassembler reassembler(guarded(), pool);
  std::vector<TcpStream> streams(40);
  Bytes nobody;
  const std::string text(1000, 'x');
  std::uint64_t held = 0, refused = 0;
  for (TcpStream& stream : streams) {
    Reassembler::begin(stream, up, 1);
    for (std::uint32_t i = 1; i < 100; ++i) {
      const Taken taken = reassembler.feed(stream, up, tcp(1, 1, up, tcp_ack, 1 + i * 2000, 1, text), nobody);
      (taken == Taken::all ? held : refused) += 1;
    }
  }
  EXPECT_EQ(held, 512U);
  EXPECT_EQ(reassembler.counters().not_held, refused);
  TcpStream other;
  Bytes bytes;
  Reassembler::begin(other, up, 1);
  Reassembler::begin(other, down, 1);
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(reassembler.feed(other, up, tcp(1, 1, up, tcp_ack, 1 + i * 1000, 1, text), bytes), Taken::all) << i;
    if (i % 8 == 7) {
      reassembler.feed(other, down, tcp(1, 1, down, tcp_ack, 1, 1 + i * 1000), bytes);
    }
  }
  EXPECT_EQ(bytes.all[0].size(), 100'000U);
  EXPECT_EQ(reassembler.counters().history_lost, 0U);
  reassembler.release(other);
  for (TcpStream& stream : streams) {
    reassembler.release(stream);
  }
  reassembler.give_back(held);
  EXPECT_EQ(pool.in_use(), 0U);
}

// Of a sender with more under way than can be kept the rest waits for acknowledgments; nothing stands still.
TEST(TcpAdmit, WhatCannotBeKeptIsRefusedUntilWhatIsIsAcknowledged) {
  Rig rig(guarded(), 1001, 1U << 20);
  std::vector<std::uint8_t*> blocks;
  ASSERT_EQ(rig.put(0, std::string(1000, 'a')), Taken::all);
  while (std::uint8_t* const block = rig.pool.take(256)) {
    blocks.push_back(block);
  }
  EXPECT_EQ(rig.put(1000, std::string(1000, 'b')), Taken::no_capacity);
  EXPECT_EQ(rig.put(0, std::string(1000, 'X')), Taken::conflict);
  rig.ack(1000);
  EXPECT_EQ(rig.put(1000, std::string(1000, 'b')), Taken::all);
  EXPECT_EQ(rig.put(1000, std::string(1000, 'X')), Taken::conflict);
  EXPECT_EQ(rig.got().size(), 2000U);
  for (std::uint8_t* const block : blocks) {
    rig.pool.give(block);
  }
}

// The pool has one block, and the new bytes around what waits want two.
TEST(TcpAdmit, OfASegmentThatIsRefusedForWantOfMemoryNothingWaits) {
  for (const bool drop : {true, false}) {
    StreamSettings settings = guarded();
    settings.drop_without_capacity = drop;
    Rig rig(settings);
    rig.put(100, "x");
    std::vector<std::uint8_t*> blocks;
    while (std::uint8_t* const block = rig.pool.take(256)) {
      blocks.push_back(block);
    }
    rig.pool.give(blocks.back());
    blocks.pop_back();
    const std::string segment = std::string(50, 'y') + "x" + std::string(99, 'y');
    EXPECT_EQ(rig.put(50, segment), drop ? Taken::no_capacity : Taken::part);
    EXPECT_EQ(rig.stream.sides[0].held_bytes, drop ? 1U : 0U) << "without that policy delivery goes on behind a gap";
    EXPECT_EQ(rig.got(), drop ? "" : segment.substr(0, 51));
    for (std::uint8_t* const block : blocks) {
      rig.pool.give(block);
    }
    if (!drop) continue;
    EXPECT_EQ(rig.put(50, std::string(50, 'z')), Taken::all) << "it was never there";
  }
}

// The last eighth of the pool is for conversations that have little under way.
TEST(TcpAdmit, WhoHasMuchUnderWayLeavesAnEighthOfThePool) {
  Rig rig(guarded(), 1001, 1U << 20);
  std::vector<std::uint8_t*> blocks;
  while (rig.pool.in_use() < rig.pool.capacity() / 8 * 7) {
    blocks.push_back(rig.pool.take(256));
  }
  const std::string text(1000, 'a');
  for (std::uint32_t at = 0; at < 4000; at += 1000) {
    EXPECT_EQ(rig.put(at, text), Taken::all) << at;
  }
  EXPECT_EQ(rig.put(4000, text), Taken::no_capacity) << "more than 4 KiB";
  rig.ack(4000);
  EXPECT_EQ(rig.put(4000, text), Taken::all);
  for (std::uint8_t* const block : blocks) {
    rig.pool.give(block);
  }
  for (std::uint32_t at = 5000; at < 10'000; at += 1000) {
    EXPECT_EQ(rig.put(at, text), Taken::all) << at;
  }
}

// A stream that never had memory goes on; what is sent again in it cannot be compared.
TEST(TcpAdmit, WhatWasNotKeptCannotBeCompared) {
  for (const bool drop : {true, false}) {
    StreamSettings settings = guarded();
    settings.drop_without_capacity = drop;
    Rig rig(settings, 1001, 1);
    std::vector<std::uint8_t*> blocks;
    while (std::uint8_t* const block = rig.pool.take(256)) {
      blocks.push_back(block);
    }
    EXPECT_EQ(rig.put(0, "abcd"), Taken::all);
    EXPECT_EQ(rig.put(4, "efgh"), Taken::all);
    EXPECT_EQ(rig.put(0, "abcd"), drop ? Taken::no_capacity : Taken::part);
    EXPECT_EQ(rig.reassembler.counters().not_compared, 1U);
    rig.ack(8);
    EXPECT_EQ(rig.put(0, "abcd"), Taken::all) << "acknowledged";
    EXPECT_EQ(rig.got(), "abcdefgh");
    for (std::uint8_t* const block : blocks) {
      rig.pool.give(block);
    }
  }
}

// A receiver, and a network between that loses, repeats and reorders what a sender with a window sends, before and
// behind the stream: nothing is refused for a conflict, and the receiver's bytes are the sink's.
TEST(TcpAdmit, ALossyLinkGoesOnAndNothingIsAConflict) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    StreamSettings settings = guarded();
    settings.window = random() % 200;
    settings.held_segments = 1 + random() % 40;
    Rig rig(settings, static_cast<std::uint32_t>(random()));
    const std::uint32_t size = 20'000, window = 500 + random() % 8000;
    std::string wanted(size, 0);
    std::generate(wanted.begin(), wanted.end(), [&] { return static_cast<char>(random()); });
    std::vector<bool> there(size + 1);
    std::uint32_t received = 0;  // what the receiver acknowledges
    std::uint32_t known = 0;     // to the sender
    for (int step = 0; received < size && step < 200'000; ++step) {
      const std::uint32_t at =
          std::min(size - 1, known + (random() % 3 == 0 ? 0 : static_cast<std::uint32_t>(random()) % window));
      const std::uint32_t length = std::min<std::uint32_t>(1 + random() % 700, size - at);
      if (random() % 10 == 0) {
        continue;  // lost before
      }
      const Taken taken = rig.put(at, std::string_view(wanted).substr(at, length));
      ASSERT_NE(taken, Taken::conflict) << round;
      if (taken == Taken::no_capacity || random() % 10 == 0) {
        continue;  // lost behind
      }
      std::fill_n(there.begin() + at, length, true);
      while (there[received]) {
        ++received;
      }
      if (random() % 2 == 0) {
        rig.ack(received);
        known = random() % 4 == 0 ? known : received;
      }
    }
    ASSERT_EQ(received, size) << round << ": it stands still";
    rig.ack(size);
    EXPECT_EQ(rig.got(), wanted) << round;
    EXPECT_EQ(rig.reassembler.counters().gaps, 0U);
    EXPECT_EQ(rig.reassembler.counters().not_compared, 0U);
  }
}

}  // namespace
}  // namespace sluice::flow
