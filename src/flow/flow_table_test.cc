#include "flow/flow_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

#include "flow/flow_table_trial_test.h"
#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using namespace test;

TEST(FlowTable, MemoryOfAMillionFlows) {
  const std::uint64_t bytes = FlowTable::memory_bytes(1U << 20);
  EXPECT_EQ(bytes, (128U << 20) + (16U << 20));
}

TEST(FlowTable, BothDirectionsAreOneFlow) {
  FlowTable table(small());
  const Packet out = tcp(1, 1000, up, tcp_syn, 100, 0);
  const Packet back = tcp(1, 1000, down, tcp_syn | tcp_ack, 500, 101);
  EXPECT_EQ(table.hash(out), table.hash(back));
  const Fed first = feed(table, out, 0);
  const Fed second = feed(table, back, 1);
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
    const Fed step = feed(table, tcp(1, 1000, from, flags, sequence, acknowledgment), 1);
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
  const Fed step = feed(table, tcp(1, 1000, up, tcp_ack, 101, 501), 0);
  EXPECT_EQ(step.flow->state, FlowState::established);
  EXPECT_EQ(step.flow->initial[1], 500U);
  EXPECT_FALSE(step.flow->has(FlowFlag::crossed));
}

TEST(FlowTable, ASynOnAClosedFlowBeginsAnother) {
  Ends ends;
  FlowTable table(small(), &ends);
  handshake(table, 1, 1000, 0);
  feed(table, tcp(1, 1000, down, tcp_rst | tcp_ack, 501, 101), 0);
  const Fed step = feed(table, tcp(1, 1000, up, tcp_syn, 7000, 0), 1);
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
    const Fed step = feed(table, tcp(1, c.port, up, tcp_ack, 101, 501, "hello"), 1);
    EXPECT_EQ(step.check, TcpCheck::good) << c.what;
    EXPECT_EQ(step.direction, up) << c.what;
    EXPECT_TRUE(step.flow->established()) << c.what;
    EXPECT_FALSE(step.flow->has(FlowFlag::midstream | FlowFlag::no_session)) << c.what;
    EXPECT_EQ(ends.reasons, std::vector{FlowEndReason::restarted}) << c.what;
    EXPECT_EQ(table.in_use(), 1U) << c.what;
  }
}

// Which SYN of several reached the server, its answer shows.
TEST(FlowTable, ASecondSynChangesNothing) {
  for (const std::uint32_t taken : {100U, 9000U, 20'000U}) {
    FlowTable table(small());
    for (const std::uint32_t sequence : {100U, 9000U, 20'000U, 20'000U}) {
      feed(table, tcp(1, 1000, up, tcp_syn, sequence, 0), 0);
    }
    EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, 500, taken + 1), 0).check, TcpCheck::good);
    const Fed step = feed(table, tcp(1, 1000, up, tcp_ack, taken + 1, 501, "hello"), 0);
    EXPECT_EQ(step.check, TcpCheck::good) << taken;
    EXPECT_TRUE(step.flow->established()) << taken;
    EXPECT_EQ(step.flow->initial[0], taken);
  }
}

// Which SYN-ACK of several reached the client, its ACK shows.
TEST(FlowTable, ASecondSynAckChangesNothing) {
  for (const std::uint32_t taken : {500U, 9000U, 0xc0000000U}) {
    FlowTable table(small());
    feed(table, tcp(1, 1000, up, tcp_syn, 100, 0), 0);
    for (const std::uint32_t sequence : {500U, 9000U, 0xc0000000U, 9000U, 9000U}) {
      EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, sequence, 101), 0).check, TcpCheck::good);
    }
    const Fed step = feed(table, tcp(1, 1000, up, tcp_ack, 101, taken + 1, "hello"), 0);
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
  const Fed step = feed(table, tcp(1, 1000, down, tcp_fin | tcp_ack, 501, 101), 0);
  EXPECT_EQ(step.flow->state, FlowState::closing);
}

// Between the SYN and its answer, in the server's name.
TEST(FlowTable, AStraySegmentBeforeTheSynAckChangesNothing) {
  FlowTable table(small());
  feed(table, tcp(1, 1000, up, tcp_syn, 100, 0), 0);
  EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_ack, 7777, 101), 0).check, TcpCheck::no_session);
  feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, 500, 101), 0);
  const Fed step = feed(table, tcp(1, 1000, up, tcp_ack, 101, 501, "hello"), 0);
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
    const Fed step = feed(table, tcp(1, 1000, down, tcp_rst, c.sequence, 0), 0);
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
    const Fed step = feed(table, tcp(1, 1000, down, tcp_rst | tcp_ack, 0, acknowledgment), 0);
    EXPECT_EQ(step.check == TcpCheck::good, acknowledgment == 101) << acknowledgment;
  }
}

TEST(FlowTable, DataFarOutsideTheWindowIsBad) {
  FlowTable table(small());
  handshake(table, 1, 1000, 0);
  EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_ack, 101 + 100'000, 501, "x"), 0).check, TcpCheck::good);
  EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_ack, 101 + 1'000'000, 501, "x"), 0).check, TcpCheck::bad);
}

// Whoever sends in the receiver's name would move its window, and what is acknowledged, to anywhere.
TEST(FlowTable, AnAcknowledgmentOfWhatWasNeverSentMovesNothing) {
  for (const std::uint32_t acknowledged : {50'000U, 200'000U}) {
    FlowTable table(small());
    handshake(table, 1, 1000, 0);
    const Flow* const flow = feed(table, tcp(1, 1000, down, tcp_ack, 501, 101 + acknowledged), 0).flow;
    EXPECT_EQ(flow->acked[0], acknowledged == 50'000 ? 101 + acknowledged : 101) << "it may have gone by here";
    const Packet data = tcp(1, 1000, up, tcp_ack, 101 + 180'000, 501, "x");
    EXPECT_EQ(feed(table, data, 0).check, acknowledged == 50'000 ? TcpCheck::good : TcpCheck::bad);
  }
}

TEST(FlowTable, AFinBehindTheWindowEndsNothing) {
  for (const std::uint32_t ahead : {0U, 65535U, 65536U, 100'000U}) {
    FlowTable table(small());
    handshake(table, 1, 1000, 0);
    const Fed step = feed(table, tcp(1, 1000, up, tcp_ack | tcp_fin, 101 + ahead, 501), 0);
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
    const Fed step = feed(table, tcp(1, 1000, down, tcp_ack, 1, 2, "y"), 0);
    EXPECT_EQ(step.flow->established(), midstream);
    EXPECT_TRUE(step.flow->has(FlowFlag::midstream));
    // From a SYN-ACK on, too.
    feed(table, tcp(2, 1000, down, tcp_syn | tcp_ack, 500, 101), 0);
    EXPECT_EQ(feed(table, tcp(2, 1000, up, tcp_ack, 101, 501), 0).flow->established(), midstream);
  }
}

// A gateway that is started again under bulk traffic: what was under way is acknowledged without having been seen, and
// the sender goes on behind it, by a window whose scale nobody has seen.
TEST(FlowTable, WhatWasUnderWayWhenAConversationIsFoundIsNotOutsideIt) {
  for (const bool midstream : {false, true}) {
    for (const Direction sender : {up, down}) {
      for (const std::uint32_t first : {1'000U, 0xfffffc00U}) {  // wraps
        FlowSettings settings = small();
        settings.midstream = midstream;
        FlowTable table(settings);
        const Direction receiver = sender == up ? down : up;
        const auto send = [&](std::uint32_t ahead, std::uint8_t flags = tcp_ack) {
          return feed(table, tcp(1, 1000, sender, flags, first + ahead, 501, "data"), 0).check;
        };
        const TcpCheck fits = midstream ? TcpCheck::good : TcpCheck::no_session;
        EXPECT_EQ(send(0), fits) << "sent again";
        EXPECT_EQ(send(600'000), TcpCheck::no_session) << "before anything is acknowledged";
        EXPECT_EQ(send(600'004), fits) << "the window goes on from there";
        Packet answer = tcp(1, 1000, receiver, tcp_ack, 501, first + 900'000);
        answer.window = 9596;
        EXPECT_EQ(feed(table, answer, 0).check, fits);
        for (const std::uint32_t ahead : {900'000 + 600'000U, 900'000U, 900'000U - 1400}) {
          EXPECT_EQ(send(ahead), fits) << ahead;
        }
        EXPECT_EQ(send(0x7f000000), TcpCheck::no_session) << "beyond the largest window";
        EXPECT_EQ(send(0x7f000004), fits);
        EXPECT_EQ(table.counters().bad_sequence, 0U);
      }
    }
  }
}

// Seen from the side that does not send first: the window that it has opened holds.
TEST(FlowTable, AWindowOpenedBeforeItsSenderWasHeardHolds) {
  FlowSettings settings = small();
  settings.midstream = true;
  FlowTable table(settings);
  feed(table, tcp(1, 1000, up, tcp_ack, 101, 1000), 0);
  feed(table, tcp(1, 1000, down, tcp_ack, 1000, 101, "data"), 0);
  EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_ack, 600'000, 101, "data"), 0).check, TcpCheck::good);
}

// Nobody has seen whether the server scales windows, too: the client's hold as its SYN says, the server's may be any.
TEST(FlowTable, WithoutTheSynAckTheScaleOfTheSynHolds) {
  FlowSettings settings = small();
  settings.midstream = true;
  FlowTable table(settings);
  Packet syn = tcp(1, 1000, up, tcp_syn, 100, 0);
  syn.window_scale = 7;
  feed(table, syn, 0);
  EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_ack, 501, 101, "data"), 0).check, TcpCheck::good);
  feed(table, tcp(1, 1000, up, tcp_ack, 101, 505), 0);  // its window: 8 MiB
  EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_ack, 8'000'000, 101, "data"), 0).check, TcpCheck::good);
  EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_ack, 20'000'000, 101, "data"), 0).check, TcpCheck::no_session);
  feed(table, tcp(1, 1000, down, tcp_ack, 505, 101), 0);
  EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_ack, 20'000'000, 505, "data"), 0).check, TcpCheck::good);
}

// A RST that does not fit ends nothing, a FIN outside the window neither; a SYN-ACK may be of a SYN that passed before.
TEST(FlowTable, WhatEndsOrOpensAConversationFoundInTheMiddleMustFit) {
  for (const bool midstream : {false, true}) {
    FlowSettings settings = small();
    settings.midstream = midstream;
    FlowTable table(settings);
    feed(table, tcp(1, 1000, up, tcp_ack, 101, 501, "data"), 0);
    feed(table, tcp(1, 1000, down, tcp_ack, 501, 105), 0);
    EXPECT_EQ(feed(table, tcp(1, 1000, up, tcp_rst, 9000, 0), 0).check, TcpCheck::bad);
    EXPECT_EQ(feed(table, tcp(1, 1000, down, tcp_syn | tcp_ack, 9000, 7000, "data"), 0).check,
              midstream ? TcpCheck::bad : TcpCheck::no_session);
    feed(table, tcp(1, 1000, up, tcp_ack | tcp_fin, 0x7f000000, 501), 0);
    const Fed fed = feed(table, tcp(1, 1000, down, tcp_ack | tcp_fin, 501, 105), 0);
    EXPECT_NE(fed.flow->state, FlowState::closed);
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
  handshake(table, 3, 3, 0);                     // closed
  feed(table, tcp(3, 3, up, tcp_fin | tcp_ack, 101, 501), 0);
  feed(table, tcp(3, 3, down, tcp_fin | tcp_ack, 501, 102), 0);
  handshake(table, 5, 5, 0);  // closing
  feed(table, tcp(5, 5, up, tcp_fin | tcp_ack, 101, 501), 0);
  Packet udp = tcp(4, 4, up, 0, 0, 0);
  udp.protocol = packet::protocol_udp;
  feed(table, udp, 0);
  const auto left_at = [&](Milliseconds now) {
    table.sweep(now, 64);
    return table.in_use();
  };
  EXPECT_EQ(left_at(times.udp_new - 1), 5U);
  EXPECT_EQ(left_at(times.udp_new), 4U);
  EXPECT_EQ(left_at(times.tcp_new - 1), 4U);
  EXPECT_EQ(left_at(times.tcp_new), 2U) << "fresh and closed";
  EXPECT_EQ(left_at(times.tcp_established - 1), 2U);
  // Expired, but not swept: not found either.
  const Fed step = feed(table, tcp(1, 1, up, tcp_ack, 101, 501), times.tcp_established);
  EXPECT_EQ(step.flow->state, FlowState::fresh);
  EXPECT_EQ(table.counters().expired, 4U);
  EXPECT_EQ(table.counters().made, 6U);
}

// Of whatever protocol their datagrams are: nobody follows a conversation in them, so that nobody remembers it.
TEST(FlowTable, FragmentsAreOfNoConversationOfTcp) {
  for (const std::uint8_t protocol : {packet::protocol_tcp, packet::protocol_udp}) {
    FlowSettings settings = remembering();
    settings.timeouts.tcp_established = settings.timeouts.udp_established = 7'440'000;
    settings.timeouts.tcp_new = settings.timeouts.udp_new = 60'000;
    const FlowTimeouts& times = settings.timeouts;
    Ends ends;
    FlowTable table(settings, &ends);
    const auto piece = [&](Direction direction) {
      Packet packet = tcp(1, 0, direction, 0, 0, 0);
      packet.source_port = packet.destination_port = 0;
      packet.protocol = protocol;
      packet.fragment = true;
      return packet;
    };
    const auto in_use_at = [&](Milliseconds now) {
      table.sweep(now, 64);
      return table.in_use();
    };
    feed(table, piece(up), 0);
    EXPECT_EQ(in_use_at(times.other_new - 1), 1U);
    EXPECT_EQ(in_use_at(times.other_new), 0U);
    Milliseconds now = 100'000;
    feed(table, piece(up), now);
    Flow* const flow = feed(table, piece(down), now).flow;
    EXPECT_TRUE(flow->established());
    EXPECT_FALSE(table.evict_silent(*flow, now + 10, 11));
    EXPECT_EQ(in_use_at(now + times.other_established - 1), 1U);
    now += times.other_established;
    Direction direction{};
    EXPECT_EQ(table.find(piece(up), table.hash(piece(up)), now, direction), nullptr);
    EXPECT_EQ(in_use_at(now), 0U);
    EXPECT_EQ(table.in_class(), (std::array<std::uint32_t, 3>{})) << "nothing is remembered";
    // Nor is it, when others need what it holds.
    feed(table, piece(up), now);
    ASSERT_TRUE(table.evict_silent(*feed(table, piece(down), now).flow, now + 10, 10));
    EXPECT_EQ(table.in_class(), (std::array<std::uint32_t, 3>{}));
    // Packets with the ports 0 are others.
    Packet whole = piece(up);
    whole.fragment = false;
    whole.tcp_flags = tcp_syn;
    Flow* const fragments = feed(table, piece(up), now).flow;
    EXPECT_NE(feed(table, whole, now).flow, fragments);
    EXPECT_EQ(feed(table, piece(down), now).flow, fragments);
  }
}

// Found by a packet, or by a sweep: a conversation of TCP that was established ends, and what goes on is known for
// that.
TEST(FlowTable, AConversationThatFallsSilentIsRemembered) {
  const FlowTimeouts times;
  for (const bool swept : {false, true}) {
    Ends ends;
    FlowTable table(remembering(), &ends);
    handshake(table, 1, 1, 0);
    feed(table, tcp(2, 2, up, tcp_syn, 1, 0), 0);
    Milliseconds now = times.tcp_established;
    if (swept) table.sweep(now, 64);
    const std::size_t ended = swept ? 2 : 1;
    const Packet more = tcp(1, 1, up, tcp_ack, 101, 501, "more");
    Direction direction{};
    EXPECT_EQ(table.find(more, table.hash(more), now, direction), nullptr) << "it is no conversation any more";
    const Fed step = feed(table, more, now);
    EXPECT_EQ(step.check, TcpCheck::no_session);
    EXPECT_EQ(step.direction, up);
    ASSERT_EQ(step.flow->state, FlowState::silent);
    step.flow->user = 7;
    EXPECT_EQ(ends.reasons, std::vector(ended, FlowEndReason::expired)) << "the other one has expired for good";
    EXPECT_EQ(table.counters().expired, ended);
    EXPECT_EQ(table.in_use(), 2 - ended);
    for (const std::uint8_t flags : {tcp_ack, tcp_rst, tcp_fin, std::uint8_t{tcp_syn | tcp_ack}}) {
      const Fed next = feed(table, tcp(1, 1, down, flags, 501, 101), now);
      EXPECT_EQ(next.check, TcpCheck::no_session);
      EXPECT_EQ(next.flow->state, FlowState::silent);
      EXPECT_EQ(next.flow->user, 7);
    }
    // For so long behind its last packet.
    now += times.tcp_established + 1'000'000 - 1;
    EXPECT_EQ(feed(table, more, now).flow->user, 7);
    now += times.tcp_established + 1'000'000;
    EXPECT_EQ(feed(table, more, now).flow->user, 0);
    EXPECT_EQ(table.in_class(), (std::array<std::uint32_t, 3>{swept ? 1U : 2U, 0, 0}));
    EXPECT_EQ(table.counters().made, table.in_use() + table.counters().expired);
    EXPECT_EQ(ends.reasons.size(), ended) << "and it does not end twice";
  }
}

// Its hosts may know it still: as of an established one, the server says whether a SYN begins another.
TEST(FlowTable, ASynOfASilentConversationBeginsAnotherWhenTheServerAnswersIt) {
  FlowTable table(remembering());
  handshake(table, 1, 1, 0);
  const Milliseconds now = FlowTimeouts().tcp_established;
  EXPECT_EQ(feed(table, tcp(1, 1, up, tcp_syn, 9000, 0), now).flow->state, FlowState::silent);
  EXPECT_EQ(feed(table, tcp(1, 1, up, tcp_ack, 9001, 501, "evil"), now).check, TcpCheck::no_session);
  EXPECT_EQ(feed(table, tcp(1, 1, down, tcp_syn | tcp_ack, 7000, 4001), now).flow->state, FlowState::silent);
  EXPECT_EQ(feed(table, tcp(1, 1, down, tcp_syn | tcp_ack, 7000, 9001), now).flow->state, FlowState::half_open);
  const Fed step = feed(table, tcp(1, 1, up, tcp_ack, 9001, 7001, "anew"), now);
  EXPECT_EQ(step.check, TcpCheck::good);
  EXPECT_TRUE(step.flow->established());
  EXPECT_EQ(table.in_use(), 1U);
}

TEST(FlowTable, WithMidstreamASilentConversationIsTakenUpWithItsMark) {
  FlowSettings settings = remembering();
  settings.midstream = true;
  FlowTable table(settings);
  handshake(table, 1, 1, 0);
  const Milliseconds now = FlowTimeouts().tcp_established;
  feed(table, tcp(1, 1, up, tcp_ack, 101, 501), now - 1).flow->user = 7;
  const Fed step = feed(table, tcp(1, 1, up, tcp_ack, 101, 501, "more"), 2 * now);
  EXPECT_EQ(step.check, TcpCheck::good);
  EXPECT_EQ(step.flow->state, FlowState::fresh);
  EXPECT_EQ(step.flow->user, 7);
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
