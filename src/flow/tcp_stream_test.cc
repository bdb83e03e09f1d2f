#include "flow/tcp_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using test::tcp;
constexpr Direction up = Direction::to_server;
constexpr Direction down = Direction::to_client;

struct Bytes final : StreamSink {
  void data(Direction direction, const StreamData& data) override {
    auto& mine = all[static_cast<unsigned>(direction)];
    EXPECT_EQ(data.offset, mine.size() + skipped);
    EXPECT_TRUE(data.window.ends_with(data.fresh));
    EXPECT_EQ(data.fresh.data() + data.fresh.size(), data.window.data() + data.window.size());
    mine += data.fresh;
    windows.emplace_back(data.window);
  }
  void gap(Direction, std::uint64_t bytes) override {
    gaps.push_back(bytes);
    skipped += bytes;
  }
  void closed(Direction direction) override { closes += direction == up ? 'u' : 'd'; }
  void restarted(Direction direction) override {
    all[static_cast<unsigned>(direction)].clear();
    skipped = 0;
    ++restarts;
  }
  std::string all[2];
  std::vector<std::string> windows;
  std::vector<std::uint64_t> gaps;
  std::uint64_t skipped = 0;
  std::string closes;
  unsigned restarts = 0;
};

// A stream whose client side begins at `first`.
struct Rig {
  explicit Rig(StreamSettings settings = {}, std::uint32_t first_byte = 1001, std::size_t pool_bytes = 1U << 20)
      : pool(pool_bytes), reassembler(settings, pool), first(first_byte) {
    send(up, tcp_syn, first - 1, 0);
    send(down, tcp_syn | tcp_ack, 5000, first);
  }
  ~Rig() {
    reassembler.release(stream);
    EXPECT_EQ(pool.in_use(), 0U);
  }
  Taken send(Direction direction, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledgment,
             std::string_view payload = {}) {
    return reassembler.feed(stream, direction, tcp(1, 1000, direction, flags, sequence, acknowledgment, payload), sink);
  }
  // The client's byte number `at`.
  bool at(std::uint32_t at, std::string_view payload, std::uint8_t flags = 0) {
    return put(at, payload, flags) == Taken::all;
  }
  Taken put(std::uint32_t at, std::string_view payload, std::uint8_t flags = 0) {
    return send(up, flags, first + at, 0, payload);
  }
  // The server has the client's bytes before this one.
  void ack(std::uint32_t at) { send(down, tcp_ack, 5001, first + at); }
  const std::string& got() const { return sink.all[0]; }

  BlockPool pool;
  Reassembler reassembler;
  TcpStream stream;
  Bytes sink;
  std::uint32_t first;
};

TEST(TcpStream, InOrder) {
  Rig rig;
  rig.at(0, "hello ");
  rig.at(6, "world", tcp_fin);
  EXPECT_EQ(rig.got(), "hello world");
  EXPECT_EQ(rig.sink.closes, "u");
  rig.at(11, "more");
  EXPECT_EQ(rig.got(), "hello world") << "behind the FIN";
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
  EXPECT_EQ(reassembler.feed(stream, up, tcp(1, 1, up, tcp_ack, 5, 1, "no room"), sink), Taken::part);
}

StreamSettings guarded() {
  StreamSettings settings;
  settings.drop_conflicts = settings.drop_without_room = true;
  return settings;
}

// What a decoy of a sender hides: it does not reach the receiver, and the true segment must not either.
TEST(TcpStream, ASegmentWithOtherBytesIsRefusedWhereTheReceiverMayTakeThem) {
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
TEST(TcpStream, SequencesThatAreMadeUpAreComparedWithNothing) {
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
TEST(TcpStream, BytesAreKeptUntilTheyAreAcknowledged) {
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

TEST(TcpStream, BehindTheDepthWhatCameBeforeItIsKeptUntilItIsAcknowledged) {
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
TEST(TcpStream, ALongTransferGoesOnBehindTheDepth) {
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

TEST(TcpStream, WithoutRoomToWaitASegmentIsRefusedAndNoGapIsMade) {
  StreamSettings by_count = guarded(), by_bytes = guarded();
  by_count.held_segments = 3;
  by_bytes.held_bytes = 6;
  for (const StreamSettings& settings : {by_count, by_bytes}) {
    Rig rig(settings);
    for (const std::uint32_t at : {10U, 20U, 30U}) {
      EXPECT_EQ(rig.put(at, "ab"), Taken::all);
    }
    EXPECT_EQ(rig.put(40, "ab"), Taken::no_room);
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

// Who sends much out of order takes half of the pool, and other streams go on.
TEST(TcpStream, WhatWaitsTakesHalfOfThePoolAtTheMost) {
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
  EXPECT_EQ(pool.in_use(), 0U);
}

// Of a sender with more under way than can be kept the rest waits for acknowledgments; nothing stands still.
TEST(TcpStream, WhatCannotBeKeptIsRefusedUntilWhatIsIsAcknowledged) {
  Rig rig(guarded(), 1001, 1U << 20);
  std::vector<std::uint8_t*> blocks;
  ASSERT_EQ(rig.put(0, std::string(1000, 'a')), Taken::all);
  while (std::uint8_t* const block = rig.pool.take(256)) {
    blocks.push_back(block);
  }
  EXPECT_EQ(rig.put(1000, std::string(1000, 'b')), Taken::no_room);
  EXPECT_EQ(rig.put(0, std::string(1000, 'X')), Taken::conflict);
  rig.ack(1000);
  EXPECT_EQ(rig.put(1000, std::string(1000, 'b')), Taken::all);
  EXPECT_EQ(rig.put(1000, std::string(1000, 'X')), Taken::conflict);
  EXPECT_EQ(rig.got().size(), 2000U);
  for (std::uint8_t* const block : blocks) {
    rig.pool.give(block);
  }
}

// A stream that never had memory goes on; what is sent again in it cannot be compared.
TEST(TcpStream, WhatWasNotKeptCannotBeCompared) {
  for (const bool drop : {true, false}) {
    StreamSettings settings = guarded();
    settings.drop_without_room = drop;
    Rig rig(settings, 1001, 1);
    std::vector<std::uint8_t*> blocks;
    while (std::uint8_t* const block = rig.pool.take(256)) {
      blocks.push_back(block);
    }
    EXPECT_EQ(rig.put(0, "abcd"), Taken::all);
    EXPECT_EQ(rig.put(4, "efgh"), Taken::all);
    EXPECT_EQ(rig.put(0, "abcd"), drop ? Taken::no_room : Taken::part);
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
TEST(TcpStream, ALossyLinkGoesOnAndNothingIsAConflict) {
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
      if (taken == Taken::no_room || random() % 10 == 0) {
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
