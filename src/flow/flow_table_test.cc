#include "flow/flow_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using test::tcp;
constexpr Direction up = Direction::to_server;
constexpr Direction down = Direction::to_client;

FlowSettings small(std::uint32_t capacity = 64) {
  FlowSettings settings;
  settings.capacity = capacity;
  settings.seed = 42;
  return settings;
}

struct Ends final : FlowEnd {
  void flow_ended(Flow&, FlowEndReason reason) override { reasons.push_back(reason); }
  std::vector<FlowEndReason> reasons;
};

// One packet through the table.
struct Step {
  Flow* flow;
  Direction direction;
  TcpCheck check;
};
Step feed(FlowTable& table, const Packet& packet, Milliseconds now) {
  Step step{};
  step.flow = table.find_or_make(packet, now, step.direction);
  if (step.flow != nullptr) {
    step.check = table.track(*step.flow, step.direction, packet, now);
  }
  return step;
}

void handshake(FlowTable& table, std::uint32_t client, std::uint16_t port, Milliseconds now) {
  feed(table, tcp(client, port, up, tcp_syn, 100, 0), now);
  feed(table, tcp(client, port, down, tcp_syn | tcp_ack, 500, 101), now);
  feed(table, tcp(client, port, up, tcp_ack, 101, 501), now);
}

TEST(FlowTable, MemoryOfAMillionFlows) {
  const std::uint64_t bytes = FlowTable::memory_bytes(1U << 20);
  EXPECT_EQ(bytes, (128U << 20) + (16U << 20));
}

TEST(FlowTable, BothDirectionsAreOneFlow) {
  FlowTable table(small());
  const Packet out = tcp(1, 1000, up, tcp_syn, 100, 0);
  const Packet back = tcp(1, 1000, down, tcp_syn | tcp_ack, 500, 101);
  EXPECT_EQ(table.hash(out), table.hash(back));
  const Step first = feed(table, out, 0);
  const Step second = feed(table, back, 1);
  EXPECT_EQ(first.flow, second.flow);
  EXPECT_EQ(first.direction, up);
  EXPECT_EQ(second.direction, down);
  EXPECT_EQ(first.flow->client_port, 1000);
  EXPECT_EQ(first.flow->packets[0], 1U);
  EXPECT_EQ(first.flow->bytes[1], 40U);
  EXPECT_EQ(table.in_use(), 1U);
  Packet other = out;
  other.protocol = packet::protocol_udp;
  EXPECT_NE(feed(table, other, 1).flow, first.flow);
}

TEST(FlowTable, AFlowIsSeenByItsHashAhead) {
  FlowTable table(small());
  const Packet out = tcp(1, 1000, up, tcp_syn, 100, 0);
  EXPECT_EQ(table.peek(table.hash(out)), nullptr);
  const Flow* const flow = feed(table, out, 0).flow;
  EXPECT_EQ(table.peek(table.hash(out)), flow);
  EXPECT_EQ(table.peek(table.hash(tcp(1, 1000, down, tcp_ack, 500, 101))), flow);
  EXPECT_EQ(table.peek(table.hash(tcp(2, 1000, up, tcp_syn, 100, 0))), nullptr);
  table.flush();
  EXPECT_EQ(table.peek(table.hash(out)), nullptr);
}

TEST(FlowTable, TheHashIsKeyed) {
  FlowSettings settings = small();
  FlowTable one(settings);
  settings.seed = 43;
  FlowTable two(settings);
  EXPECT_NE(one.hash(tcp(1, 1000, up, tcp_syn, 0, 0)), two.hash(tcp(1, 1000, up, tcp_syn, 0, 0)));
}

TEST(FlowTable, WhoTheClientIs) {
  struct Case {
    const char* what;
    Direction sent;
    std::uint8_t flags;
    std::uint16_t port;
    Direction found;
  };
  // The packet goes between `port` of one host and port 80 of the other; `found`: relative to the one with `port`.
  for (const Case& c :
       {Case{"SYN's sender", up, tcp_syn, 10, up}, Case{"SYN's sender, from the lower port", down, tcp_syn, 1000, up},
        Case{"SYN-ACK's receiver", down, tcp_syn | tcp_ack, 10, down},
        Case{"in the middle, the higher port", down, tcp_ack, 1000, down},
        Case{"in the middle, the higher port sends", up, tcp_ack, 1000, up},
        Case{"in the middle, from the lower port", up, tcp_ack, 10, down}}) {
    FlowTable table(small());
    EXPECT_EQ(feed(table, tcp(1, c.port, c.sent, c.flags, 1, 1), 0).direction, c.found) << c.what;
  }
}

TEST(FlowTable, TcpStates) {
  FlowTable table(small());
  Flow* const flow = feed(table, tcp(1, 1000, up, tcp_syn, 100, 0), 0).flow;
  EXPECT_EQ(flow->state, FlowState::fresh);
  feed(table, tcp(1, 1000, up, tcp_syn, 100, 0), 0);
  EXPECT_EQ(flow->state, FlowState::fresh) << "a SYN again";
  EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, 500, 77), 0).check, TcpCheck::bad);
  EXPECT_EQ(flow->state, FlowState::fresh) << "a SYN-ACK for another SYN";
  feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, 500, 101), 0);
  EXPECT_EQ(flow->state, FlowState::half_open);
  feed(table, tcp(1, 1000, up, tcp_ack, 101, 12345), 0);
  EXPECT_EQ(flow->state, FlowState::half_open) << "an ACK of something else";
  feed(table, tcp(1, 1000, up, tcp_ack, 101, 501), 0);
  EXPECT_EQ(flow->state, FlowState::established);
  EXPECT_TRUE(flow->established());
  EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_syn, 9000, 0), 0).check, TcpCheck::bad) << "a SYN in the middle";
  feed(table, tcp(1, 1000, up, tcp_ack, 101, 501, "hello"), 0);
  feed(table, tcp(1, 1000, up, tcp_ack | tcp_fin, 106, 501), 0);
  EXPECT_EQ(flow->state, FlowState::closing);
  EXPECT_TRUE(flow->established());
  feed(table, tcp(1, 1000, down, tcp_ack | tcp_fin, 501, 107), 0);
  EXPECT_EQ(flow->state, FlowState::closed);
  EXPECT_EQ(table.counters().bad_sequence, 2U);
}

TEST(FlowTable, ASplitHandshakeEstablishesToo) {
  FlowTable table(small());
  const auto state = [&](Direction from, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledgment) {
    const Step step = feed(table, tcp(1, 1000, from, flags, sequence, acknowledgment), 1);
    return step.check == TcpCheck::good ? std::optional(step.flow->state) : std::nullopt;
  };
  EXPECT_EQ(state(up, tcp_syn, 100, 0), FlowState::fresh);
  EXPECT_EQ(state(down, tcp_syn, 500, 0), FlowState::fresh);
  EXPECT_EQ(state(down, tcp_syn, 501, 0), std::nullopt);
  EXPECT_EQ(state(up, tcp_syn | tcp_ack, 99, 501), std::nullopt) << "another sequence than its SYN's";
  EXPECT_EQ(state(up, tcp_syn | tcp_ack, 100, 500), std::nullopt) << "does not acknowledge the SYN";
  EXPECT_EQ(state(up, tcp_syn | tcp_ack, 100, 501), FlowState::half_open);
  EXPECT_EQ(state(down, tcp_ack, 501, 100), FlowState::half_open);
  EXPECT_EQ(state(down, tcp_ack, 501, 101), FlowState::established);
}

// A SYN that somebody else sends in the server's name does not keep the handshake from being seen.
TEST(FlowTable, AForgedSynOfTheServerChangesNothing) {
  FlowTable table(small());
  feed(table, tcp(1, 1000, up, tcp_syn, 100, 0), 0);
  feed(table, tcp(1, 1000, down, tcp_syn, 7777, 0), 0);
  EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, 500, 101), 0).check, TcpCheck::good);
  const Step step = feed(table, tcp(1, 1000, up, tcp_ack, 101, 501), 0);
  EXPECT_EQ(step.flow->state, FlowState::established);
  EXPECT_EQ(step.flow->initial[1], 500U);
  EXPECT_FALSE(step.flow->has(FlowFlag::crossed));
}

TEST(FlowTable, ASynOnAClosedFlowBeginsAnother) {
  Ends ends;
  FlowTable table(small(), &ends);
  handshake(table, 1, 1000, 0);
  feed(table, tcp(1, 1000, down, tcp_rst | tcp_ack, 501, 101), 0);
  const Step step = feed(table, tcp(1, 1000, up, tcp_syn, 7000, 0), 1);
  EXPECT_EQ(step.flow->state, FlowState::fresh);
  EXPECT_EQ(step.flow->initial[0], 7000U);
  EXPECT_EQ(ends.reasons, std::vector{FlowEndReason::restarted});
  EXPECT_EQ(table.counters().restarted, 1U);
}

// Nor does anything that somebody sends before the SYN: it would turn off all rules for established conversations.
TEST(FlowTable, AStraySegmentBeforeTheSynChangesNothing) {
  struct Case {
    const char* what;
    Direction from;
    std::uint8_t flags;
    std::uint16_t port;  // of the client; the server's is 80
    bool midstream;
  };
  for (const Case& c :
       {Case{"an ACK", up, tcp_ack, 1000, false}, Case{"an ACK from the lower port", up, tcp_ack, 10, false},
        Case{"a SYN-ACK of the client", up, tcp_syn | tcp_ack, 1000, false},
        Case{"a SYN-ACK", down, tcp_syn | tcp_ack, 1000, false}, Case{"a FIN", up, tcp_ack | tcp_fin, 1000, false},
        Case{"a RST", up, tcp_rst, 1000, false}, Case{"an ACK, with midstream", up, tcp_ack, 10, true}}) {
    Ends ends;
    FlowSettings settings = small();
    settings.midstream = c.midstream;
    FlowTable table(settings, &ends);
    feed(table, tcp(1, c.port, c.from, c.flags, 7777, 42), 0);
    handshake(table, 1, c.port, 1);
    const Step step = feed(table, tcp(1, c.port, up, tcp_ack, 101, 501, "hello"), 1);
    EXPECT_EQ(step.check, TcpCheck::good) << c.what;
    EXPECT_EQ(step.direction, up) << c.what;
    EXPECT_TRUE(step.flow->established()) << c.what;
    EXPECT_FALSE(step.flow->has(FlowFlag::midstream | FlowFlag::no_session)) << c.what;
    EXPECT_EQ(ends.reasons, std::vector{FlowEndReason::restarted}) << c.what;
    EXPECT_EQ(table.in_use(), 1U) << c.what;
  }
}

// Which SYN of several reached the server, its answer tells.
TEST(FlowTable, ASecondSynChangesNothing) {
  for (const std::uint32_t taken : {100U, 9000U, 20'000U}) {
    FlowTable table(small());
    for (const std::uint32_t sequence : {100U, 9000U, 20'000U, 20'000U}) {
      feed(table, tcp(1, 1000, up, tcp_syn, sequence, 0), 0);
    }
    EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, 500, taken + 1), 0).check, TcpCheck::good);
    const Step step = feed(table, tcp(1, 1000, up, tcp_ack, taken + 1, 501, "hello"), 0);
    EXPECT_EQ(step.check, TcpCheck::good) << taken;
    EXPECT_TRUE(step.flow->established()) << taken;
    EXPECT_EQ(step.flow->initial[0], taken);
  }
}

// Which SYN-ACK of several reached the client, its ACK tells.
TEST(FlowTable, ASecondSynAckChangesNothing) {
  for (const std::uint32_t taken : {500U, 9000U, 0xc0000000U}) {
    FlowTable table(small());
    feed(table, tcp(1, 1000, up, tcp_syn, 100, 0), 0);
    for (const std::uint32_t sequence : {500U, 9000U, 0xc0000000U, 9000U, 9000U}) {
      EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, sequence, 101), 0).check, TcpCheck::good);
    }
    const Step step = feed(table, tcp(1, 1000, up, tcp_ack, 101, taken + 1, "hello"), 0);
    EXPECT_EQ(step.check, TcpCheck::good) << taken;
    EXPECT_TRUE(step.flow->established()) << taken;
    EXPECT_EQ(step.flow->initial[1], taken);
    EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_ack, taken + 1, 106, "hello"), 0).check, TcpCheck::good);
  }
}

// Nor does a FIN behind a SYN that does not count.
TEST(FlowTable, AFinOfAnotherSynEndsNothing) {
  FlowTable table(small());
  feed(table, tcp(1, 1000, up, tcp_syn, 900, 0), 0);
  feed(table, tcp(1, 1000, up, tcp_fin, 901, 0), 0);
  handshake(table, 1, 1000, 0);
  const Step step = feed(table, tcp(1, 1000, down, tcp_fin | tcp_ack, 501, 101), 0);
  EXPECT_EQ(step.flow->state, FlowState::closing);
}

// Between the SYN and its answer, in the server's name.
TEST(FlowTable, AStraySegmentBeforeTheSynAckChangesNothing) {
  FlowTable table(small());
  feed(table, tcp(1, 1000, up, tcp_syn, 100, 0), 0);
  EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_ack, 7777, 101), 0).check, TcpCheck::no_session);
  feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, 500, 101), 0);
  const Step step = feed(table, tcp(1, 1000, up, tcp_ack, 101, 501, "hello"), 0);
  EXPECT_EQ(step.check, TcpCheck::good);
  EXPECT_TRUE(step.flow->established());
}

TEST(FlowTable, ASynInAnEstablishedFlowWithoutHandshakeIsBad) {
  FlowSettings settings = small();
  settings.midstream = true;
  FlowTable table(settings);
  feed(table, tcp(1, 1000, up, tcp_ack, 101, 501), 0);
  EXPECT_TRUE(feed(table, tcp(1, 1000, down, tcp_ack, 501, 101), 0).flow->established());
  EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_syn, 9000, 0), 0).check, TcpCheck::bad);
  EXPECT_EQ(table.counters().restarted, 0U);
}

TEST(FlowTable, ResetsMustFit) {
  struct Case {
    std::uint32_t sequence;
    bool good;
  };
  // The server has sent up to 501, and the client's window is 65,535.
  for (const Case& c :
       {Case{501, true}, Case{502, false}, Case{501 + 65535, false}, Case{500, false}, Case{0x80000000, false}}) {
    FlowTable table(small());
    handshake(table, 1, 1000, 0);
    const Step step = feed(table, tcp(1, 1000, down, tcp_rst, c.sequence, 0), 0);
    EXPECT_EQ(step.check == TcpCheck::good, c.good) << c.sequence;
    EXPECT_EQ(step.flow->state, c.good ? FlowState::closed : FlowState::established) << c.sequence;
  }
  struct InFlight {
    std::optional<std::uint32_t> expected;
    std::uint32_t sequence;
    bool good;
  };
  // The server has sent ten bytes more, which are not acknowledged yet.
  for (const InFlight& c :
       {InFlight{{}, 511, true}, InFlight{{}, 501, true}, InFlight{{}, 505, false}, InFlight{511, 511, true},
        InFlight{511, 501, false}, InFlight{505, 505, true}, InFlight{505, 511, false}}) {
    FlowTable table(small());
    handshake(table, 1, 1000, 0);
    Flow* const flow = feed(table, tcp(1, 1000, down, tcp_ack, 501, 101, "ten bytes."), 0).flow;
    const TcpCheck check = table.track(*flow, down, tcp(1, 1000, down, tcp_rst, c.sequence, 0), 0, c.expected);
    EXPECT_EQ(check == TcpCheck::good, c.good) << c.expected.value_or(0) << ' ' << c.sequence;
  }
  for (const std::uint32_t acknowledgment : {101U, 102U}) {  // in answer to a SYN
    FlowTable table(small());
    feed(table, tcp(1, 1000, up, tcp_syn, 100, 0), 0);
    const Step step = feed(table, tcp(1, 1000, down, tcp_rst | tcp_ack, 0, acknowledgment), 0);
    EXPECT_EQ(step.check == TcpCheck::good, acknowledgment == 101) << acknowledgment;
  }
}

TEST(FlowTable, DataFarOutsideTheWindowIsBad) {
  FlowTable table(small());
  handshake(table, 1, 1000, 0);
  EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_ack, 101 + 100'000, 501, "x"), 0).check, TcpCheck::good);
  EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_ack, 101 + 1'000'000, 501, "x"), 0).check, TcpCheck::bad);
}

TEST(FlowTable, AFinBehindTheWindowEndsNothing) {
  for (const std::uint32_t ahead : {0U, 65535U, 65536U, 100'000U}) {
    FlowTable table(small());
    handshake(table, 1, 1000, 0);
    const Step step = feed(table, tcp(1, 1000, up, tcp_ack | tcp_fin, 101 + ahead, 501), 0);
    EXPECT_EQ(step.check, TcpCheck::good);
    EXPECT_EQ(step.flow->state, ahead <= 65535 ? FlowState::closing : FlowState::established) << ahead;
  }
}

TEST(FlowTable, MidstreamIsASetting) {
  for (const bool midstream : {false, true}) {
    FlowSettings settings = small();
    settings.midstream = midstream;
    FlowTable table(settings);
    EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_ack, 1, 1, "x"), 0).check,
              midstream ? TcpCheck::good : TcpCheck::no_session);
    const Step step = feed(table, tcp(1, 1000, down, tcp_ack, 1, 2, "y"), 0);
    EXPECT_EQ(step.flow->established(), midstream);
    EXPECT_TRUE(step.flow->has(FlowFlag::midstream));
    // From a SYN-ACK on, too.
    feed(table, tcp(2, 1000, down, tcp_syn | tcp_ack, 500, 101), 0);
    EXPECT_EQ(feed(table, tcp(2, 1000, up, tcp_ack, 101, 501), 0).flow->established(), midstream);
  }
}

TEST(FlowTable, OthersAreEstablishedOnceBothSidesAreHeard) {
  for (const std::uint8_t protocol : {packet::protocol_udp, packet::protocol_icmp, std::uint8_t{47}}) {
    FlowTable table(small());
    Packet out = tcp(1, 1000, up, 0, 0, 0);
    Packet back = tcp(1, 1000, down, 0, 0, 0);
    out.protocol = back.protocol = protocol;
    Flow* const flow = feed(table, out, 0).flow;
    feed(table, out, 0);
    EXPECT_FALSE(flow->established());
    EXPECT_EQ(feed(table, back, 0).direction, down);
    EXPECT_TRUE(flow->established());
  }
}

TEST(FlowTable, TimeoutsByState) {
  FlowTable table(small());
  const FlowTimeouts times;
  handshake(table, 1, 1, 0);                     // established
  feed(table, tcp(2, 2, up, tcp_syn, 1, 0), 0);  // fresh
  handshake(table, 3, 3, 0);                     // closing
  feed(table, tcp(3, 3, up, tcp_fin | tcp_ack, 101, 501), 0);
  Packet udp = tcp(4, 4, up, 0, 0, 0);
  udp.protocol = packet::protocol_udp;
  feed(table, udp, 0);
  const auto left_at = [&](Milliseconds now) {
    table.sweep(now, 64);
    return table.in_use();
  };
  EXPECT_EQ(left_at(times.udp_new - 1), 4U);
  EXPECT_EQ(left_at(times.udp_new), 3U);
  EXPECT_EQ(left_at(times.tcp_new - 1), 3U);
  EXPECT_EQ(left_at(times.tcp_new), 1U) << "fresh and closing";
  EXPECT_EQ(left_at(times.tcp_established - 1), 1U);
  // Expired, but not swept: not found either.
  const Step step = feed(table, tcp(1, 1, up, tcp_ack, 101, 501), times.tcp_established);
  EXPECT_EQ(step.flow->state, FlowState::fresh);
  EXPECT_EQ(table.counters().expired, 4U);
  EXPECT_EQ(table.counters().made, 5U);
}

TEST(FlowTable, WhoGoesFirstWhenItIsFull) {
  Ends ends;
  FlowTable table(small(4), &ends);
  handshake(table, 1, 1, 0);
  handshake(table, 2, 2, 0);
  feed(table, tcp(3, 3, up, tcp_syn, 1, 0), 10);
  handshake(table, 4, 4, 20);
  feed(table, tcp(4, 4, up, tcp_rst | tcp_ack, 101, 501), 20);
  ASSERT_EQ(table.in_use(), 4U);
  auto newcomer = [&, next = 10U](Milliseconds now) mutable {
    handshake(table, next, 9, now);
    ++next;
    return ends.reasons.empty() ? FlowEndReason::flushed : ends.reasons.back();
  };
  EXPECT_EQ(newcomer(30), FlowEndReason::evicted_closed);
  EXPECT_EQ(newcomer(40), FlowEndReason::evicted_new);
  EXPECT_EQ(ends.reasons.size(), 2U);
  newcomer(50);  // four established ones: refused, all three packets of it
  EXPECT_EQ(ends.reasons.size(), 2U);
  EXPECT_EQ(table.counters().refused_full, 3U);
  feed(table, tcp(2, 2, up, tcp_ack, 101, 501), 50'000);
  EXPECT_EQ(newcomer(60'000), FlowEndReason::evicted_idle) << "the one that has been silent for a minute";
  EXPECT_EQ(table.counters().evicted_idle, 1U);
  Direction direction{};
  EXPECT_NE(table.find(tcp(2, 2, up, 0, 0, 0), table.hash(tcp(2, 2, up, 0, 0, 0)), 60'000, direction), nullptr);
  EXPECT_EQ(table.in_use(), 4U);
}

// Clients whose flows fall into the same two buckets and no other.
std::vector<std::uint32_t> clients_of_one_pair(const FlowTable& table, std::size_t count) {
  std::vector<std::uint32_t> clients;
  std::array<std::uint32_t, 2> pair{};
  for (std::uint32_t client = 0; clients.size() < count; ++client) {
    const auto buckets = table.buckets_of(table.hash(tcp(client, 9, up, 0, 0, 0)));
    if (clients.empty() && buckets[0] != buckets[1]) {
      pair = buckets;
    }
    if (buckets == pair && buckets[0] != buckets[1]) {
      clients.push_back(client);
    }
  }
  return clients;
}

TEST(FlowTable, FullBucketsGiveUpOnlyWhatMayGo) {
  for (const FlowState gone : {FlowState::established, FlowState::fresh, FlowState::closed}) {
    FlowTable table(small());
    const std::vector<std::uint32_t> clients = clients_of_one_pair(table, 17);
    for (std::size_t i = 0; i < 16; ++i) {
      if (i == 7 && gone == FlowState::fresh) {
        feed(table, tcp(clients[i], 9, up, tcp_syn, 100, 0), 0);
      } else {
        handshake(table, clients[i], 9, 0);
      }
    }
    if (gone == FlowState::closed) {
      feed(table, tcp(clients[7], 9, up, tcp_rst, 101, 0), 0);
    }
    Flow* const flow = feed(table, tcp(clients[16], 9, up, tcp_syn, 100, 0), 1).flow;
    const FlowCounters& counters = table.counters();
    EXPECT_EQ(flow != nullptr, gone != FlowState::established);
    EXPECT_EQ(counters.refused_bucket, gone == FlowState::established ? 1U : 0U);
    EXPECT_EQ(counters.evicted_new, gone == FlowState::fresh ? 1U : 0U);
    EXPECT_EQ(counters.evicted_closed, gone == FlowState::closed ? 1U : 0U);
    EXPECT_EQ(table.in_use(), 16U);
    EXPECT_EQ(table.in_class()[1], gone == FlowState::established ? 16U : 15U);
  }
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// The flood: SYNs from random addresses to a table that holds a million conversations. None of those is lost, memory
// stays what it was, and every flow that was made is either there or counted away.
TEST(FlowTable, ASynFloodEvictsNoEstablishedFlow) {
#ifdef SLUICE_SANITIZED
  constexpr std::uint32_t established = 50'000, flood = 500'000, spare = 4096;
#else
  constexpr std::uint32_t established = 1'000'000, flood = 10'000'000, spare = 65'536;
#endif
  FlowTable table(small(established + spare));
  for (std::uint32_t i = 0; i < established; ++i) {
    handshake(table, i, 1000, 0);
  }
  ASSERT_EQ(table.in_class()[1], established);
  const std::uint64_t resident = resident_bytes();
  std::uint64_t random = 1;
  for (std::uint32_t i = 0; i < flood; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    Packet syn =
        tcp(static_cast<std::uint32_t>(random >> 33), static_cast<std::uint16_t>(random >> 17), up, tcp_syn, i, 0);
    syn.source[0] = static_cast<std::uint8_t>(100 + (random >> 57));
    feed(table, syn, 1 + i / 10'000);
  }
  EXPECT_LT(resident_bytes(), resident + (8U << 20));
  EXPECT_EQ(table.in_class()[1], established);
  const FlowCounters& counters = table.counters();
  EXPECT_EQ(counters.refused_full, 0U);
  EXPECT_EQ(counters.evicted_idle + counters.expired + counters.evicted_closed, 0U);
  EXPECT_EQ(counters.made, table.in_use() + counters.evicted_new);
  EXPECT_LE(counters.made + counters.refused_bucket, std::uint64_t{established} + flood);
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < established; ++i) {
    Direction direction{};
    const Packet packet = tcp(i, 1000, down, tcp_ack, 501, 101);
    const Flow* const flow = table.find(packet, table.hash(packet), 2000, direction);
    found += flow != nullptr && flow->state == FlowState::established && direction == down ? 1 : 0;
  }
  EXPECT_EQ(found, established);
  std::cout << table.in_use() << " flows in " << FlowTable::memory_bytes(table.capacity()) / 1048576 << " MiB, "
            << counters.evicted_new << " evicted, " << counters.refused_bucket << " refused\n";
  // A handshake that is quicker than the flood's way through the spare places gets its flow.
  handshake(table, 5, 7, 3000);
  EXPECT_EQ(table.in_class()[1], established + 1);
}

// What the table says about any sequence of packets is what a plain map would say.
TEST(FlowTable, AgreesWithAMap) {
  FlowTable table(small(256));
  std::set<std::pair<std::uint32_t, std::uint16_t>> there;
  std::uint64_t random = 99;
  for (int i = 0; i < 50'000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const auto client = static_cast<std::uint32_t>(random >> 40) % 20;
    const auto port = static_cast<std::uint16_t>(1000 + (random >> 30) % 10);
    const Packet packet = tcp(client, port, (random >> 20 & 1) != 0 ? up : down, tcp_ack, 1, 1);
    Direction direction{};
    const bool known = table.find(packet, table.hash(packet), 0, direction) != nullptr;
    ASSERT_EQ(known, there.contains({client, port}));
    ASSERT_NE(feed(table, packet, 0).flow, nullptr);
    there.insert({client, port});
    if (random % 997 == 0) {
      table.flush();
      there.clear();
    }
    ASSERT_EQ(table.in_use(), there.size());
  }
  const FlowCounters& counters = table.counters();
  EXPECT_EQ(counters.made, table.in_use() + counters.flushed);
}

}  // namespace
}  // namespace sluice::flow
