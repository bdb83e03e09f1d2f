#include "flow/tcp_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "flow/recorder.h"
#include "flow/tcp_stream_trial_test.h"

namespace sluice::flow {
namespace {

constexpr Direction up = test::up, down = test::down;
using test::Bytes;
using test::guarded;
using test::Rig;
using test::tcp;

TEST(TcpStream, InOrder) {
  Rig rig;
  rig.at(0, "hello ");
  rig.at(6, "world", tcp_fin);
  EXPECT_EQ(rig.got(), "hello world");
  EXPECT_EQ(rig.sink.closes, "u");
  rig.at(11, "more");
  EXPECT_EQ(rig.got(), "hello world") << "behind the FIN";
}

// Where bytes in order go is where a lane asks for memory ahead of them.
TEST(TcpStream, ThePlaceOfTheNextBytesIsKnownUntilTheBlockIsFull) {
  for (const bool guards : {false, true}) {
    Rig rig(guards ? test::guarded() : StreamSettings());
    EXPECT_EQ(Reassembler::place_of(rig.stream, up, 1), nullptr) << "there is no block";
    unsigned known = 0, unknown = 0;
    for (std::uint32_t begin = 0; begin < 40'000; begin += 700) {
      const std::uint8_t* const place = Reassembler::place_of(rig.stream, up, 700);
      rig.at(begin, std::string(700, 'x'));
      ++(place == nullptr ? unknown : known);
      if (place != nullptr) {
        EXPECT_EQ(reinterpret_cast<const char*>(place), rig.sink.place) << begin;
      }
      rig.ack(begin + 700);
    }
    EXPECT_GT(unknown, 3U) << "moved to the block's beginning";
    EXPECT_EQ(known > 20, guards) << "without guard the block is as long as the window, and soon full: " << known;
    EXPECT_GT(known, 0U);
    rig.at(40'600, "the end", tcp_fin);
    EXPECT_EQ(Reassembler::place_of(rig.stream, up, 1), nullptr) << "closed";
    EXPECT_EQ(Reassembler::place_of(rig.stream, down, 1), nullptr) << "nothing came";
  }
}

TEST(TcpStream, OutOfOrderWaits) {
  Rig rig;
  rig.at(6, "world", tcp_fin);
  rig.at(3, "lo ");
  EXPECT_EQ(rig.got(), "");
  rig.at(0, "hel");
  EXPECT_EQ(rig.got(), "hello world");
  EXPECT_EQ(rig.sink.closes, "u");
  EXPECT_EQ(rig.reassembler.counters().out_of_order, 2U);
}

TEST(TcpStream, RetransmissionsAndKeepAlivesBringNothing) {
  Rig rig;
  rig.at(0, "hello");
  rig.at(0, "hello");
  rig.at(2, "llo");
  rig.at(4, std::string_view("\0", 1));  // a keep-alive: the byte before the next, with anything in it
  rig.at(4, "");
  EXPECT_EQ(rig.got(), "hello");
  EXPECT_EQ(rig.reassembler.counters().retransmitted, 3U);
  EXPECT_EQ(rig.reassembler.counters().conflicts, 0U);
  rig.at(3, "lo!");
  EXPECT_EQ(rig.got(), "hello!");
}

TEST(TcpStream, TheFirstBytesWinAndAConflictIsMarked) {
  struct Case {
    const char* what;
    std::vector<std::pair<std::uint32_t, const char*>> segments;
    const char* wanted;
    bool conflict;
  };
  const Case cases[] = {
      {"delivered before", {{0, "abcd"}, {2, "XXef"}}, "abcdef", true},
      {"waits already", {{2, "cd"}, {1, "XXXX"}, {0, "a"}}, "aXcdX", true},
      {"around what waits", {{2, "cd"}, {0, "abXXef"}}, "abcdef", true},
      {"between two that wait", {{1, "b"}, {4, "e"}, {0, "aXXXXf"}}, "abXXef", true},
      {"the same bytes", {{2, "cd"}, {0, "abcdef"}}, "abcdef", false},
      {"behind what waits", {{1, "bc"}, {2, "cd"}, {0, "a"}}, "abcd", false},
  };
  for (const Case& c : cases) {
    Rig rig;
    for (const auto& [at, bytes] : c.segments) {
      rig.at(at, bytes);
    }
    EXPECT_EQ(rig.got(), c.wanted) << c.what;
    EXPECT_EQ(rig.stream.sides[0].conflict, c.conflict) << c.what;
  }
}

TEST(TcpStream, SequenceNumbersWrap) {
  for (const std::uint32_t first : {0xfffffff0U, 0xffffffffU, 0U, 0x7ffffff8U}) {
    Rig rig({}, first);
    std::string wanted;
    for (std::uint32_t i = 0; i < 10; ++i) {
      wanted += std::string(7, static_cast<char>('a' + i));
    }
    for (const std::uint32_t i : {3U, 1U, 0U, 2U, 9U, 8U, 5U, 7U, 6U, 4U}) {
      rig.at(i * 7, std::string_view(wanted).substr(i * 7, 7));
    }
    EXPECT_EQ(rig.got(), wanted) << first;
  }
}

TEST(TcpStream, ASynWithDataAndASynAgain) {
  Rig rig;
  rig.send(down, tcp_syn | tcp_ack, 5000, 1001, "early");
  rig.send(down, tcp_ack, 5006, 1001, "!");
  EXPECT_EQ(rig.sink.all[1], "early!");
  rig.send(up, tcp_syn, 9000, 0);  // another sequence before any data
  rig.send(up, 0, 9001, 0, "data");
  EXPECT_EQ(rig.got(), "data");
}

TEST(TcpStream, ADirectionWithoutSyn) {
  BlockPool pool(1U << 20);
  for (const bool midstream : {false, true}) {
    StreamSettings settings;
    settings.midstream = midstream;
    Reassembler reassembler(settings, pool);
    TcpStream stream;
    Bytes sink;
    reassembler.feed(stream, up, tcp(1, 1, up, tcp_ack, 77, 1, "abc"), sink);
    EXPECT_EQ(sink.all[0], midstream ? "abc" : "");
    EXPECT_EQ(reassembler.counters().unopened, midstream ? 0U : 1U);
    reassembler.release(stream);
  }
}

TEST(TcpStream, WhatTheReceiverHasAndWeHaveNotIsAGap) {
  Rig rig;
  rig.at(0, "abc");
  rig.at(6, "ghi");
  rig.send(down, tcp_ack, 5001, rig.first + 6);
  EXPECT_EQ(rig.got(), "abc") << "acknowledged up to what waits, not it: it may still come";
  rig.send(down, tcp_ack, 5001, rig.first + 9);
  EXPECT_EQ(rig.got(), "abcghi");
  EXPECT_EQ(rig.sink.gaps, std::vector<std::uint64_t>{3});
  rig.at(3, "def");
  EXPECT_EQ(rig.got(), "abcghi") << "too late";
  EXPECT_TRUE(rig.stream.sides[0].gap);
}

TEST(TcpStream, WhatMayWaitIsBounded) {
  for (const bool by_count : {false, true}) {
    StreamSettings settings;
    settings.held_segments = by_count ? 4 : 1000;
    settings.held_bytes = by_count ? 1000 : 8;
    Rig rig(settings);
    for (std::uint32_t i = 0; i < 4; ++i) {
      rig.at(10 + i * 4, "ab");
      EXPECT_EQ(rig.got(), "");
    }
    rig.at(10 + 4 * 4, "cd");
    EXPECT_EQ(rig.got(), "ab") << "the first that waited, behind a gap";
    EXPECT_EQ(rig.sink.gaps, std::vector<std::uint64_t>{10});
    EXPECT_EQ(rig.reassembler.counters().gaps_for_space, 1U);
  }
}

TEST(TcpStream, AnEmptyPoolMeansAGapNotAStandstill) {
  Rig rig({}, 1001, 1);
  std::vector<std::uint8_t*> blocks;
  while (std::uint8_t* const block = rig.pool.take(256)) {
    blocks.push_back(block);
  }
  rig.at(5, "lost");
  EXPECT_EQ(rig.reassembler.counters().not_held, 1U);
  rig.at(0, "abcde");
  EXPECT_EQ(rig.got(), "abcde");
  EXPECT_EQ(rig.reassembler.counters().history_lost, 1U);
  for (std::uint8_t* const block : blocks) {
    rig.pool.give(block);
  }
}

TEST(TcpStream, TooFarAheadIsNotHeld) {
  StreamSettings settings;
  settings.ahead = 1000;
  Rig rig(settings);
  rig.at(1001, "x");
  EXPECT_EQ(rig.reassembler.counters().too_far, 1U);
  rig.at(1000, "x");
  EXPECT_EQ(rig.reassembler.counters().out_of_order, 1U);
  rig.send(down, tcp_ack, 5001, rig.first + 5000);  // the receiver has had it all
  rig.at(5000, "on");
  EXPECT_EQ(rig.got(), "xon");
  EXPECT_EQ(rig.sink.skipped, 4999U);
}

TEST(TcpStream, Depth) {
  StreamSettings settings;
  settings.depth = 10;
  Rig rig(settings);
  rig.at(0, "01234567");
  rig.at(8, "89abcdef");
  rig.at(16, "xyz", tcp_fin);
  EXPECT_EQ(rig.got(), "0123456789");
  EXPECT_TRUE(rig.stream.sides[0].depth_reached);
  EXPECT_EQ(rig.reassembler.counters().depth_reached, 1U);
  EXPECT_EQ(rig.sink.closes, "u");
}

TEST(TcpStream, TheWindowHoldsWhatWasDeliveredBefore) {
  StreamSettings settings;
  settings.window = 4;
  settings.piece = 6;
  Rig rig(settings);
  rig.at(0, "ab");
  rig.at(2, "cd");
  rig.at(4, "ef");
  rig.at(6, "ghijklmn");  // longer than a piece
  EXPECT_EQ(rig.sink.windows, (std::vector<std::string>{"ab", "abcd", "abcdef", "cdefghijkl", "ijklmn"}));
  rig.at(20, "yz");
  rig.send(down, tcp_ack, 5001, rig.first + 22);
  EXPECT_EQ(rig.sink.windows.back(), "yz") << "begins anew behind a gap";
}

TEST(TcpStream, ResetDeliversWhatWaitsAndCloses) {
  Rig rig;
  rig.at(4, "efg");
  rig.send(down, tcp_rst, 5001, 0);
  EXPECT_EQ(rig.got(), "efg");
  EXPECT_EQ(rig.sink.gaps, std::vector<std::uint64_t>{4});
  EXPECT_EQ(rig.sink.closes, "ud");
}

TEST(TcpStream, AFinOfThePastIsIgnored) {
  Rig rig;
  rig.at(0, "abcdef");
  rig.at(2, "", tcp_fin);
  rig.at(6, "ghi");
  EXPECT_EQ(rig.got(), "abcdefghi");
  EXPECT_EQ(rig.sink.closes, "");
}

// What a sender whose FIN does not reach the receiver wants: that what follows is not looked at.
TEST(TcpStream, AFinThatComesTooEarlyHidesNothing) {
  Rig early;
  early.at(0, "abc");
  early.at(6, "", tcp_fin);
  EXPECT_TRUE(early.at(3, "defghi"));
  EXPECT_EQ(early.got(), "abcdefghi");
  EXPECT_EQ(early.sink.closes, "");
  early.at(9, "j", tcp_fin);
  EXPECT_EQ(early.sink.closes, "u");
  EXPECT_EQ(early.reassembler.counters().behind_fin, 1U);

  Rig before_what_waits;
  before_what_waits.at(5, "fgh");
  before_what_waits.at(0, "ab", tcp_fin);
  EXPECT_EQ(before_what_waits.sink.closes, "");
  before_what_waits.at(2, "cde");
  EXPECT_EQ(before_what_waits.got(), "abcdefgh");

  Rig late;
  late.at(3, "def", tcp_fin);
  EXPECT_TRUE(late.at(0, "abc"));
  EXPECT_EQ(late.got(), "abcdef");
  EXPECT_EQ(late.sink.closes, "u") << "out of order like any segment";
}

// The receiver has bytes that lie behind a FIN: it never took it for one.
TEST(TcpStream, AFinWithinAcknowledgedBytesHidesNothing) {
  Rig in_a_hole(guarded());
  in_a_hole.at(4, "", tcp_fin);
  EXPECT_EQ(in_a_hole.put(6, "ghi"), Taken::all);
  in_a_hole.ack(9);
  EXPECT_EQ(in_a_hole.got(), "ghi");
  EXPECT_EQ(in_a_hole.sink.closes, "");

  Rig before_what_waited;
  before_what_waited.at(9, "jkl");
  before_what_waited.at(4, "", tcp_fin);
  before_what_waited.ack(12);
  EXPECT_TRUE(before_what_waited.at(12, "mno"));
  EXPECT_EQ(before_what_waited.got(), "jklmno");
  EXPECT_EQ(before_what_waited.sink.closes, "");

  Rig believed(guarded());
  believed.at(4, "", tcp_fin);
  believed.ack(5);  // its number is acknowledged, and nothing behind it
  EXPECT_EQ(believed.put(5, "f"), Taken::conflict);
  EXPECT_EQ(believed.got(), "");
  EXPECT_EQ(believed.sink.closes, "u");
}

TEST(TcpStream, WhatItDoesNotTakeItSays) {
  StreamSettings settings;
  settings.depth = 40;
  settings.window = 8;
  settings.ahead = 100;
  settings.held_segments = 2;
  struct Segment {
    std::uint32_t at;
    const char* bytes;
    bool taken;
    std::uint8_t flags = 0;
  };
  struct Case {
    const char* what;
    std::vector<Segment> segments;
  };
  const Case cases[] = {
      {"in order, and again", {{0, "abcd", true}, {0, "abcd", true}, {2, "cdef", true}, {5, "?", true}}},
      {"out of order, and again", {{2, "cd", true}, {2, "cd", true}, {1, "bc", true}, {0, "abcdef", true}}},
      {"other bytes", {{0, "abcd", true}, {0, "abXd", false}, {2, "XXef", false}}},
      {"other bytes than what waits", {{2, "cd", true}, {1, "bXX", false}, {0, "abXXe", false}}},
      {"beyond the history", {{0, "abcdefghijkl", true}, {0, "abcdef", false}, {4, "efghijkl", true}}},
      {"fills a gap too late",
       {{1, "b", true}, {3, "d", true}, {5, "f", true}, {0, "a", false}, {2, "c", true}, {4, "e", true}}},
      {"behind a FIN", {{0, "abcd", true, tcp_fin}, {4, "more", false}, {2, "cd", true}, {2, "cdef", false}}},
      {"too far ahead", {{101, "x", false}, {30, "x", true}}},
      {"waits behind the depth", {{38, "xy", true}, {39, "xyz", false}}},
      {"behind the depth",
       {{0, "0123456789012345678901234567890123456789", true}, {40, "x", false}, {39, "9", true}, {41, "", true}}},
      {"across the depth", {{0, "01234567890123456789012345678901234567890", false}}},
  };
  for (const Case& c : cases) {
    Rig rig(settings);
    std::uint64_t not_taken = 0;
    for (const Segment& segment : c.segments) {
      EXPECT_EQ(rig.at(segment.at, segment.bytes, segment.flags), segment.taken)
          << c.what << " at " << segment.at << ": " << segment.bytes;
      not_taken += segment.taken ? 0 : 1;
    }
    EXPECT_EQ(rig.reassembler.counters().not_taken, not_taken) << c.what;
  }
  BlockPool pool(1);
  while (pool.take(256) != nullptr) {
  }
  Reassembler reassembler(settings, pool);
  TcpStream stream;
  Bytes sink;
  reassembler.begin(stream, up, 1);
  EXPECT_EQ(reassembler.feed(stream, up, tcp(1, 1, up, tcp_ack, 5, 1, "no more"), sink), Taken::part);
}

// Any segmentation and reordering, with repetitions and overlaps, gives the same bytes.
TEST(TcpStream, AnySegmentationGivesTheSameBytes) {
  std::mt19937 random(20);
  for (int round = 0; round < 400; ++round) {
    const std::size_t size = 1 + random() % 3000;
    std::string wanted(size, 0);
    std::generate(wanted.begin(), wanted.end(), [&] { return static_cast<char>(random()); });
    struct Piece {
      std::size_t at, length;
    };
    std::vector<Piece> pieces;
    const std::size_t most = 1 + random() % 400;
    for (std::size_t at = 0; at < size;) {
      const std::size_t length = std::min<std::size_t>(1 + random() % most, size - at);
      const std::size_t back = std::min<std::size_t>(at, random() % 3 == 0 ? random() % 50 : 0);
      pieces.push_back({at - back, length + back});
      if (random() % 4 == 0) {
        pieces.push_back(pieces[random() % pieces.size()]);
      }
      at += length;
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    StreamSettings settings;
    settings.window = random() % 100;
    settings.piece = 1 + random() % 500;
    settings.held_segments = 65535;
    Rig rig(settings, static_cast<std::uint32_t>(random()), 4U << 20);
    for (const Piece& piece : pieces) {
      const bool last = piece.at + piece.length == size;
      rig.at(static_cast<std::uint32_t>(piece.at), std::string_view(wanted).substr(piece.at, piece.length),
             last ? tcp_fin : 0);
    }
    ASSERT_EQ(rig.got(), wanted) << round;
    ASSERT_TRUE(rig.sink.gaps.empty()) << round;
    ASSERT_EQ(rig.reassembler.counters().conflicts, 0U) << round;
    ASSERT_EQ(rig.sink.closes, "u") << round;
  }
}

}  // namespace
}  // namespace sluice::flow
