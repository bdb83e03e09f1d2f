// Where a conversation begins and ends: SYNs, RSTs and silence, and what is refused because it lies outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "flow/conversations.h"
#include "flow/conversations_trial_test.h"
#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using namespace test;

// Inside the window, but not where the receiver is: it answers such an RST and goes on.
TEST(Conversations, ARstInTheWindowEndsNoStream) {
  test::Recorder recorder;
  Conversations conversations(small(), recorder);
  converse(conversations, 1, "hello", "", 0, false);
  EXPECT_EQ(conversations.packet(tcp(1, 1000, up, tcp_ack, 110, 501, "ahead"), 0).check, TcpCheck::good);
  for (const std::uint32_t sequence : {101U, 107U, 115U}) {
    EXPECT_EQ(conversations.packet(tcp(1, 1000, up, tcp_rst, sequence, 0), 0).check, TcpCheck::bad) << sequence;
  }
  conversations.packet(tcp(1, 1000, up, tcp_ack, 106, 501, "...."), 0);
  EXPECT_EQ(recorder.bytes[0], "hello....ahead");
  EXPECT_EQ(conversations.packet(tcp(1, 1000, up, tcp_rst, 115, 0), 0).flow->state, FlowState::closed);
}

struct Refusals final : ConversationSink {
  void stream_data(Flow&, Extra&, Direction direction, const StreamData& data) override {
    bytes[static_cast<unsigned>(direction)] += data.fresh;
  }
  void refused(Flow&, Direction, Taken why) override { all.push_back(why); }
  void stream_gap(Flow&, Extra&, Direction, std::uint64_t) override {}
  void http(Flow&, Extra&, http::Event, http::Transaction&) override {}
  void http_stopped(Flow&, Extra&, http::StopReason) override {}
  void flow_ended(Flow&, Extra*, FlowEndReason) override {}
  std::vector<Taken> all;
  std::string bytes[2];
};

// An RST that does not reach the server hides nothing: nobody goes on after his own.
TEST(Conversations, DataBehindAnRstIsRefusedWhereConflictsAre) {
  for (const bool drop : {true, false}) {
    ConversationSettings settings = small();
    settings.streams.drop_conflicts = drop;
    Refusals sink;
    Conversations conversations(settings, sink);
    const auto send = [&](Direction direction, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledgment,
                          std::string_view payload = {}) {
      return conversations.packet(tcp(1, 1000, direction, flags, sequence, acknowledgment, payload), 0);
    };
    send(up, tcp_syn, 100, 0);
    send(down, tcp_syn | tcp_ack, 500, 101);
    send(up, tcp_ack, 101, 501, "hello");
    send(down, tcp_ack, 501, 106, "answer");
    EXPECT_EQ(send(up, tcp_rst, 106, 0, "why").flow->state, FlowState::closed);
    EXPECT_TRUE(sink.all.empty()) << "an RST may say why";
    send(up, tcp_ack, 106, 507);
    EXPECT_TRUE(sink.all.empty());
    send(up, tcp_ack, 106, 507, "evil");
    send(down, tcp_ack, 507, 106, "was under way");
    EXPECT_EQ(sink.all, std::vector<Taken>(drop ? 1 : 0, Taken::conflict));
    EXPECT_EQ(conversations.behind_reset(), drop ? 1U : 0U);
    send(up, tcp_syn, 9000, 0);
    send(down, tcp_syn | tcp_ack, 7000, 9001);
    send(up, tcp_ack, 9001, 7001, " anew");
    EXPECT_EQ(sink.all.size(), drop ? 1U : 0U);
    EXPECT_EQ(sink.bytes[0], "hello anew");
  }
}

// An RST that does not reach the server, and then a SYN or a pause: the server goes on with what it has, and nothing
// more of that passes until it answers the SYN.
TEST(Conversations, BehindAnRstNothingGoesOnUntilAnotherConversationBegins) {
  constexpr Milliseconds closed = FlowTimeouts().tcp_closed, fresh = FlowTimeouts().tcp_new;
  struct Case {
    const char* what;
    Direction from;  // the RST, the SYN and what is refused
    bool handshake;  // is done before the RST
    std::vector<std::uint32_t> syns;
    Milliseconds pause;  // before the SYNs, and behind them
    bool others;         // need its record
    bool twice;          // an RST behind the SYN, too
    Taken why;
  };
  for (const Case& c :
       {Case{"a SYN", up, true, {9000}, 0, false, false, Taken::outside},
        Case{"its SYN again", up, true, {100}, 0, false, false, Taken::outside},
        Case{"a SYN next to it", up, true, {105}, 0, false, false, Taken::outside},
        Case{"two SYNs", up, true, {9000, 4000}, 0, false, false, Taken::outside},
        Case{"the server's SYN", down, true, {9000}, 0, false, false, Taken::outside},
        Case{"before the handshake is done", up, false, {9000}, 0, false, false, Taken::outside},
        Case{"a SYN and an RST", up, true, {9000}, 0, false, true, Taken::conflict},
        Case{"both, and a pause", up, true, {9000}, closed, false, true, Taken::silent},
        Case{"a pause", up, true, {}, closed, false, false, Taken::silent},
        Case{"a pause of the server", down, true, {}, closed, false, false, Taken::silent},
        Case{"a pause before the handshake is done", up, false, {}, closed, false, false, Taken::silent},
        Case{"a pause, and a SYN and another", up, true, {9000}, closed, false, false, Taken::silent},
        Case{"no record", up, true, {}, 0, true, false, Taken::silent}}) {
    for (const bool remembered : {true, false}) {
      ConversationSettings settings = small();
      settings.flows.remembered = remembered ? 1'000'000 : 0;
      settings.streams.drop_conflicts = settings.drop_silent = true;
      Refusals sink;
      Conversations conversations(settings, sink);
      Milliseconds now = 0;
      const auto send = [&](Direction direction, std::uint8_t flags, std::uint32_t sequence,
                            std::uint32_t acknowledgment, std::string_view payload = {}) {
        return conversations.packet(tcp(1, 1000, direction, flags, sequence, acknowledgment, payload), now);
      };
      std::uint32_t mine = c.from == up ? 101 : 501;
      const std::uint32_t other = c.from == up ? 501 : 101;
      send(up, tcp_syn, 100, 0);
      send(down, tcp_syn | tcp_ack, 500, 101);
      if (c.handshake) {
        send(up, tcp_ack, 101, 501);
        send(c.from, tcp_ack, mine, other, "hello");
        mine += 5;
      }
      ASSERT_EQ(send(c.from, tcp_rst, mine, 0).flow->state, FlowState::closed) << c.what;
      now += c.pause;
      for (const std::uint32_t syn : c.syns) send(c.from, tcp_syn, syn, 0);
      if (c.twice) send(c.from, tcp_rst, c.syns.back() + 1, 0);
      now += c.syns.empty() ? 0 : c.pause / closed * fresh;
      for (std::uint32_t i = 2; c.others && i < 2 + settings.extras; ++i)
        converse(conversations, i, "x", "", now, false);
      send(c.from, tcp_ack, mine, other);
      EXPECT_TRUE(sink.all.empty()) << c.what << ": no data";
      if (c.syns.empty()) send(c.from == up ? down : up, tcp_ack, other, mine, "under way");
      EXPECT_TRUE(sink.all.empty()) << c.what << ": the other side may not have got the RST";
      if (remembered && c.syns.empty()) send(down, tcp_syn | tcp_ack, 500, 101);  // nobody asks for that again
      send(c.from, tcp_ack, mine, other, "evil");
      if (!remembered) continue;
      EXPECT_EQ(sink.all, std::vector{c.why}) << c.what;
      sink.bytes[0].clear();
      send(up, tcp_syn, 7000, 0);
      send(down, tcp_syn | tcp_ack, 3000, 7001);
      EXPECT_TRUE(send(up, tcp_ack, 7001, 3001, "anew").flow->established()) << c.what;
      EXPECT_EQ(sink.bytes[0], c.others ? "" : "anew") << c.what;
      EXPECT_EQ(sink.all.size(), 1U) << c.what;
    }
  }
}

// It was remembered as what nobody had answered.
TEST(Conversations, BehindAnRstASynMayBeAnsweredLate) {
  ConversationSettings settings = small();
  settings.flows.remembered = 1'000'000;
  settings.streams.drop_conflicts = settings.drop_silent = true;
  for (const std::uint32_t answered : {9001U, 9002U}) {
    Refusals sink;
    Conversations conversations(settings, sink);
    Milliseconds now = 0;
    const auto send = [&](Direction direction, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledgment,
                          std::string_view payload = {}) {
      return conversations.packet(tcp(1, 1000, direction, flags, sequence, acknowledgment, payload), now);
    };
    send(up, tcp_syn, 100, 0);
    send(down, tcp_syn | tcp_ack, 500, 101);
    send(up, tcp_ack, 101, 501);
    send(up, tcp_rst, 101, 0);
    send(up, tcp_syn, 9000, 0);
    now += FlowTimeouts().tcp_new;
    send(down, tcp_syn | tcp_ack, 7000, answered);
    const bool is_its = answered == 9001;
    EXPECT_EQ(send(up, tcp_ack, 9001, 7001, "anew").flow->established(), is_its);
    EXPECT_EQ(sink.all, std::vector<Taken>(is_its ? 0 : 1, Taken::silent));
  }
}

// What a SYN brought the server may have thrown away, or it came without (RFC 7413).
TEST(Conversations, AnRstAnswersASynWithOrWithoutItsData) {
  for (const std::uint32_t answered : {100U, 101U, 103U, 106U, 107U}) {
    Refusals sink;
    Conversations conversations(small(), sink);
    conversations.packet(tcp(1, 1000, up, tcp_syn, 100, 0, "GET /"), 0);
    conversations.packet(tcp(1, 1000, up, tcp_syn, 100, 0), 0);
    const Seen seen = conversations.packet(tcp(1, 1000, down, tcp_rst | tcp_ack, 0, answered), 0);
    EXPECT_EQ(seen.flow->state, answered > 100 && answered < 107 ? FlowState::closed : FlowState::fresh) << answered;
  }
}

// Nobody has seen where it was: its RST may be anybody's.
TEST(Conversations, DataBehindAnRstOfAConversationFoundInTheMiddleIsNotRefused) {
  ConversationSettings settings = small();
  settings.flows.midstream = true;
  settings.streams.drop_conflicts = true;
  Refusals sink;
  Conversations conversations(settings, sink);
  conversations.packet(tcp(1, 1000, up, tcp_ack, 101, 501, "hello"), 0);
  conversations.packet(tcp(1, 1000, down, tcp_ack, 501, 106, "answer"), 0);
  const Seen seen = conversations.packet(tcp(1, 1000, up, tcp_rst, 106, 0), 0);
  EXPECT_EQ(seen.flow->state, FlowState::closed);
  conversations.packet(tcp(1, 1000, up, tcp_ack, 106, 507, "and on"), 0);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_EQ(conversations.behind_reset(), 0U);
}

// A gateway that is started again under bulk traffic, both ways: nothing of the conversation is refused for good. The
// receiver has part of what was under way; the sender fills the rest, from the first hole on, behind what it has sent
// already.
TEST(Conversations, ATransferFoundInTheMiddleGoesOn) {
  constexpr std::uint32_t piece = 1400, una = 0xfffff000, acked = una + 400 * piece, sent = acked + 400 * piece;
  const std::string data(piece, 'x');
  for (const bool midstream : {false, true}) {
    for (const Direction sender : {up, down}) {
      ConversationSettings settings = small();
      settings.flows.midstream = midstream;
      settings.streams.drop_conflicts = settings.streams.drop_without_capacity = true;
      settings.streams.depth = 0;
      test::Recorder recorder;
      Conversations conversations(settings, recorder);
      const auto arrives = [&](std::uint32_t sequence) {
        const std::size_t before = recorder.refused_all.size();
        conversations.packet(tcp(1, 1000, sender, tcp_ack, sequence, 501, data), 0);
        return recorder.refused_all.size() == before;
      };
      const auto acknowledge = [&](std::uint32_t acknowledgment) {
        Packet answer = tcp(1, 1000, sender == up ? down : up, tcp_ack, 501, acknowledgment);
        answer.window = 9596;
        conversations.packet(answer, 0);
      };
      EXPECT_TRUE(arrives(una)) << "sent again";
      acknowledge(acked);
      for (std::uint32_t at = sent; at != sent + 300 * piece; at += piece) {
        arrives(at);  // more than waits in a stream
      }
      for (std::uint32_t at = acked; at != sent; at += piece) {
        ASSERT_TRUE(arrives(at)) << midstream << " " << at - acked;
        acknowledge(at + piece);
      }
      EXPECT_TRUE(arrives(una - piece)) << "from before it was found";
      EXPECT_TRUE(arrives(una)) << "late";
      EXPECT_EQ(std::count(recorder.refused_all.begin(), recorder.refused_all.end(), Taken::outside), 0);
      const std::string& got = recorder.bytes[static_cast<unsigned>(sender)];
      EXPECT_GE(got.size(), midstream ? 401 * piece : 0U);
      EXPECT_EQ(conversations.without_session(), midstream ? 0U : 703U);
    }
  }
}

// What the server has is what the stream has, whatever window scale the client's other SYNs, or a SYN-ACK again, say.
TEST(Conversations, OfSeveralSynsTheLargestWindowScaleCounts) {
  constexpr std::uint8_t none = 0xff;
  struct Case {
    const char* what;
    std::vector<std::uint8_t> syns;
    std::vector<std::uint32_t> sequences;
    std::vector<std::uint8_t> answers;
    bool outside = false;
  };
  for (const Case& c :
       {Case{"one", {7}, {1000}, {7}}, Case{"again without", {7, none}, {1000, 1000}, {7}},
        Case{"again with less", {7, 0}, {1000, 1000}, {7}}, Case{"first without", {none, 7}, {1000, 1000}, {7}},
        Case{"another without", {7, none}, {1000, 900}, {7}}, Case{"an answer again without", {7}, {1000}, {7, none}},
        Case{"an answer again with less", {7}, {1000}, {7, 1}}, Case{"an answer without", {7}, {1000}, {none}, true},
        Case{"none has one", {none}, {1000}, {7}, true}}) {
    ConversationSettings settings = small();
    settings.streams.drop_conflicts = settings.streams.drop_without_capacity = true;
    test::Recorder recorder;
    Conversations conversations(settings, recorder);
    for (std::size_t i = 0; i < c.syns.size(); ++i) {
      Packet syn = tcp(1, 1000, up, tcp_syn, c.sequences[i], 0);
      syn.window_scale = c.syns[i];
      conversations.packet(syn, 0);
    }
    for (const std::uint8_t scale : c.answers) {
      Packet answer = tcp(1, 1000, down, tcp_syn | tcp_ack, 5000, 1001);
      answer.window_scale = scale;
      conversations.packet(answer, 0);
    }
    conversations.packet(tcp(1, 1000, up, tcp_ack, 1001, 5001), 0);
    Packet window = tcp(1, 1000, down, tcp_ack, 5001, 1001);
    window.window = 4000;  // of 128 bytes
    conversations.packet(window, 0);
    const Seen far = conversations.packet(tcp(1, 1000, up, tcp_ack, 1001 + 150'000, 5001, "TACK"), 0);
    EXPECT_EQ(far.check, c.outside ? TcpCheck::bad : TcpCheck::good) << c.what;
    EXPECT_EQ(recorder.refused_all, std::vector<Taken>(c.outside ? 1 : 0, Taken::outside)) << c.what;
  }
}

// Whether the receiver takes it is not known, and its stream would not have it.
TEST(Conversations, DataOutsideTheConversationIsRefusedWhereStreamsAreGuarded) {
  struct Case {
    const char* what;
    test::Step step;
    bool refused;
  };
  const Case cases[] = {
      {"far behind the window", {up, tcp_ack, 1'000'000, 501, "evil"}, true},
      {"without data", {up, tcp_ack, 1'000'000, 501, ""}, false},
      {"a SYN with data", {up, tcp_syn, 9000, 0, "evil"}, true},
      {"a SYN", {up, tcp_syn, 9000, 0, ""}, false},
      {"a SYN-ACK with data", {down, tcp_syn | tcp_ack, 9000, 106, "evil"}, true},
      {"an RST that says why", {up, tcp_rst, 9000, 0, "why"}, false},
      {"what fits", {up, tcp_ack, 106, 501, "more"}, false},
  };
  for (const Case& c : cases) {
    for (const bool conflicts : {true, false}) {
      for (const bool capacity : {true, false}) {
        ConversationSettings settings = small();
        settings.streams.drop_conflicts = conflicts;
        settings.streams.drop_without_capacity = capacity;
        Refusals sink;
        Conversations conversations(settings, sink);
        converse(conversations, 1, "hello", "", 0, false);
        const test::Step& s = c.step;
        conversations.packet(tcp(1, 1000, s.direction, s.flags, s.sequence, s.acknowledgment, s.text), 0);
        const bool refused = c.refused && (conflicts || capacity);
        EXPECT_EQ(sink.all, std::vector<Taken>(refused ? 1 : 0, Taken::outside)) << c.what;
        EXPECT_EQ(conversations.outside_refused(), refused ? 1U : 0U) << c.what;
      }
    }
  }
}

// What it goes on with would be inspected without what came before, and by no rule for established conversations.
TEST(Conversations, DataOfAConversationThatWasSilentTooLongIsRefused) {
  for (const bool drop : {true, false}) {
    ConversationSettings settings = small();
    settings.flows.remembered = 1'000'000;
    settings.drop_silent = drop;
    Refusals sink;
    Conversations conversations(settings, sink);
    converse(conversations, 1, "hello", "", 0, false);
    const auto send = [&](Direction direction, std::uint8_t flags, std::uint32_t sequence, std::string_view payload) {
      return conversations.packet(tcp(1, 1000, direction, flags, sequence, 501, payload), 700'000);
    };
    EXPECT_EQ(send(up, tcp_ack, 105, "").check, TcpCheck::no_session) << "a keep-alive";
    EXPECT_EQ(conversations.extras_in_use(), 0U);
    EXPECT_TRUE(sink.all.empty());
    send(up, tcp_ack, 106, "evil");
    EXPECT_EQ(sink.all, std::vector<Taken>(drop ? 1 : 0, Taken::silent));
    const Seen seen = send(down, tcp_ack | tcp_fin, 501, "evil");
    EXPECT_EQ(conversations.extra_of(*seen.flow), nullptr);
    send(up, tcp_rst, 110, "why");
    EXPECT_EQ(sink.all.size(), drop ? 2U : 0U);
    EXPECT_EQ(conversations.without_session(), 3U);
    EXPECT_EQ(sink.bytes[0], "hello");
    // What was never seen to begin was perhaps under way before this was started.
    conversations.packet(tcp(2, 1000, up, tcp_ack, 106, 501, "more"), 700'000);
    EXPECT_EQ(sink.all.size(), drop ? 2U : 0U);
    EXPECT_EQ(conversations.without_session(), 4U);
  }
}

// The client has rebooted, or takes its port again, while the conversation is there for us.
TEST(Conversations, ASynInAnEstablishedConversationBeginsAnotherWhenTheServerAnswersIt) {
  struct Step {
    Direction direction;
    std::uint8_t flags;
    std::uint32_t sequence, acknowledgment;
    const char* text;
  };
  struct Case {
    const char* what;
    std::vector<Step> steps;
    const char* wanted;
    std::uint64_t restarted;
  };
  constexpr std::uint8_t syn_ack = tcp_syn | tcp_ack;
  const Case cases[] = {
      {"the server has forgotten it",
       {{up, tcp_syn, 9000, 0, ""}, {down, syn_ack, 7000, 9001, ""}, {up, tcp_ack, 9001, 7001, "anew"}},
       "helloanew",
       1},
      {"nothing of the old one goes on",
       {{up, tcp_syn, 9000, 0, ""},
        {down, syn_ack, 7000, 9001, ""},
        {up, tcp_ack, 9001, 7001, "anew"},
        {up, tcp_ack, 106, 501, "old"}},
       "helloanew",
       1},
      {"several SYNs: the one that the server answers",
       {{up, tcp_syn, 9000, 0, ""},
        {up, tcp_syn, 4000, 0, ""},
        {down, syn_ack, 7000, 9001, ""},
        {up, tcp_ack, 9001, 7001, "anew"}},
       "helloanew",
       1},
      {"a SYN that the server does not answer",
       {{up, tcp_syn, 9000, 0, ""}, {up, tcp_ack, 106, 501, " on"}, {up, tcp_ack, 9001, 7001, "anew"}},
       "hello on",
       0},
      {"a SYN-ACK that no SYN was for",
       {{down, syn_ack, 7000, 9001, ""}, {up, tcp_ack, 106, 501, " on"}},
       "hello on",
       0},
      {"a SYN-ACK for another SYN",
       {{up, tcp_syn, 9000, 0, ""}, {down, syn_ack, 7000, 5001, ""}, {up, tcp_ack, 106, 501, " on"}},
       "hello on",
       0},
      {"the old SYN-ACK again",
       {{up, tcp_syn, 9000, 0, ""},
        {up, tcp_syn, 4000, 0, ""},
        {down, syn_ack, 500, 101, ""},
        {up, tcp_ack, 106, 501, " on"}},
       "hello on",
       0},
      {"the server knows it, and the client resets it",
       {{up, tcp_syn, 9000, 0, ""},
        {down, tcp_ack, 501, 106, ""},
        {up, tcp_rst, 106, 0, ""},
        {up, tcp_syn, 9000, 0, ""},
        {down, syn_ack, 7000, 9001, ""},
        {up, tcp_ack, 9001, 7001, "anew"}},
       "helloanew",
       1},
  };
  for (const Case& c : cases) {
    ConversationSettings settings = small();
    settings.streams.drop_conflicts = settings.streams.drop_without_capacity = true;
    test::Recorder recorder;
    Conversations conversations(settings, recorder);
    converse(conversations, 1, "hello", "", 0, false);
    for (const Step& step : c.steps) {
      conversations.packet(tcp(1, 1000, step.direction, step.flags, step.sequence, step.acknowledgment, step.text), 1);
    }
    EXPECT_EQ(recorder.bytes[0], c.wanted) << c.what;
    EXPECT_EQ(conversations.table().counters().restarted, c.restarted) << c.what;
  }
}

// Of several SYNs the one counts that the other side answers, and the stream begins behind it, whatever the others
// brought.
TEST(Conversations, AStreamBeginsBehindTheSynThatTheOtherSideAnswers) {
  constexpr std::uint8_t syn_ack = tcp_syn | tcp_ack;
  struct Case {
    const char* what;
    std::vector<test::Step> steps;  // up to the handshake's end: the client's bytes begin at 1001, the server's at 5001
    std::vector<Taken> refused = {};  // where conflicts are
    bool answer_only = false;         // the client's request is among the steps
  };
  const test::Step plain{up, tcp_syn, 1000, 0, ""}, answer{down, syn_ack, 5000, 1001, ""},
      done{up, tcp_ack, 1001, 5001, ""};
  const Case cases[] = {
      {"one SYN", {plain, answer, done}},
      {"another with data behind it", {plain, {up, tcp_syn, 900, 0, "x"}, answer, done}},
      {"far behind it", {plain, {up, tcp_syn, 0x40000000, 0, "x"}, answer, done}},
      {"far before it", {plain, {up, tcp_syn, 0xc0000000, 0, "x"}, answer, done}},
      {"before it, with data", {{up, tcp_syn, 900, 0, "GET /"}, plain, answer, done}},
      {"with data and a FIN", {{up, tcp_syn | tcp_fin, 900, 0, "x"}, plain, answer, done}},
      {"and data that waits", {{up, tcp_syn, 900, 0, "x"}, {up, tcp_ack, 910, 0, "y"}, plain, answer, done}},
      {"two with data",
       {{up, tcp_syn, 900, 0, "x"}, {up, tcp_syn, 800, 0, "y"}, plain, answer, done},
       {Taken::conflict}},
      {"its data again", {{up, tcp_syn, 1000, 0, "GET /"}, answer, done}},
      {"another behind its data", {{up, tcp_syn, 1000, 0, "GET /"}, {up, tcp_syn, 77, 0, ""}, answer, done}},
      {"again without its data, which the server has",
       {{up, tcp_syn, 1000, 0, "GET /"}, plain, {down, syn_ack, 5000, 1006, ""}, done}},
      {"an RST behind it", {plain, {up, tcp_rst, 1001, 0, ""}, answer, done}},
      {"an RST behind its data",
       {{up, tcp_syn, 1000, 0, "GET /"}, {up, tcp_rst, 1006, 0, ""}, {down, syn_ack, 5000, 1006, ""}, done}},
      {"an RST and another", {plain, {up, tcp_rst, 1001, 0, ""}, {up, tcp_syn, 900, 0, ""}, answer, done}},
      {"an RST of the server's", {plain, {down, tcp_rst | tcp_ack, 0, 1001, ""}, answer, done}},
      {"another SYN-ACK before", {plain, {down, syn_ack, 0x40000000, 1001, "x"}, answer, done}},
      {"another SYN-ACK behind", {plain, answer, {down, syn_ack, 0x40000000, 1001, "x"}, done}},
      {"around it", {plain, {down, syn_ack, 700, 1001, "x"}, answer, {down, syn_ack, 0xc0000000, 1001, "x"}, done}},
      {"another SYN-ACK, and the request is there",
       {{up, tcp_syn, 1000, 0, get},
        {down, syn_ack, 700, 1001 + static_cast<std::uint32_t>(get.size()), "x"},
        {down, syn_ack, 5000, 1001 + static_cast<std::uint32_t>(get.size()), ""},
        done},
       {},
       true},
  };
  for (const Case& c : cases) {
    for (const bool drop : {true, false}) {
      ConversationSettings settings = small();
      settings.streams.drop_conflicts = settings.streams.drop_without_capacity = drop;
      test::Recorder recorder;
      Conversations conversations(settings, recorder);
      const auto send = [&](const test::Step& s) {
        return conversations.packet(tcp(1, 1000, s.direction, s.flags, s.sequence, s.acknowledgment, s.text), 0);
      };
      for (const test::Step& step : c.steps) send(step);
      const auto size = static_cast<std::uint32_t>(get.size());
      if (!c.answer_only) {
        send({up, tcp_ack, 1001, 5001, get.substr(0, 6)});
        send({down, tcp_ack, 5001, 1007, ""});
        send({up, tcp_ack, 1007, 5001, get.substr(6)});
      }
      const Seen seen = send({down, tcp_ack, 5001, 1001 + size, ok.substr(0, ok.size() - 1)});
      send({up, tcp_ack, 1001 + size, 5001 + static_cast<std::uint32_t>(ok.size()) - 1, ""});
      send({down, tcp_ack | tcp_fin, 5000 + static_cast<std::uint32_t>(ok.size()), 1001 + size,
            ok.substr(ok.size() - 1)});
      EXPECT_TRUE(seen.flow->established()) << c.what << drop;
      EXPECT_EQ(seen.flow->initial, (std::array<std::uint32_t, 2>{1000, 5000})) << c.what << drop;
      EXPECT_TRUE(recorder.bytes[0].ends_with(get)) << c.what << drop << recorder.bytes[0];
      EXPECT_TRUE(recorder.bytes[1].ends_with(ok)) << c.what << drop << recorder.bytes[1];
      ASSERT_FALSE(recorder.exchanges.empty()) << c.what << drop;
      EXPECT_EQ(recorder.exchanges.back().uri, "/x") << c.what << drop;
      EXPECT_EQ(recorder.exchanges.back().response_body, "body") << c.what << drop;
      EXPECT_EQ(recorder.refused_all, drop ? c.refused : std::vector<Taken>{}) << c.what;
      EXPECT_EQ(recorder.gaps[1], 0U) << c.what << drop;
      conversations.flush();
      EXPECT_EQ(conversations.stream_pool().in_use() + conversations.http_pool().in_use(), 0U) << c.what;
    }
  }
}

// The answer is to one of two SYNs, or to the other with its data: what the receiver has is not known.
TEST(Conversations, AnAnswerWithinWhatASynBroughtIsRefusedWhereConflictsAre) {
  for (const bool drop : {true, false}) {
    ConversationSettings settings = small();
    settings.streams.drop_conflicts = drop;
    test::Recorder recorder;
    Conversations conversations(settings, recorder);
    conversations.packet(tcp(1, 1000, up, tcp_syn, 1000, 0, "GET /"), 0);
    conversations.packet(tcp(1, 1000, up, tcp_syn, 77, 0), 0);
    for (int again = 0; again < 2; ++again) {
      conversations.packet(tcp(1, 1000, down, tcp_syn | tcp_ack, 5000, 1006), 0);
      EXPECT_EQ(recorder.refused_all, std::vector<Taken>(drop ? again + 1 : 0, Taken::conflict));
    }
    EXPECT_EQ(conversations.stream_counters().refused, drop ? 2U : 0U);
    EXPECT_EQ(conversations.stream_counters().restarted, drop ? 0U : 1U);
  }
}

// Its window scale is not known any more: it is taken for the largest.
TEST(Conversations, WhatTheServerBegunAnewSendsIsInTheWindowWhateverItsScale) {
  test::Recorder recorder;
  Conversations conversations(small(), recorder);
  converse(conversations, 1, "hello", "", 0, false);
  conversations.packet(tcp(1, 1000, up, tcp_syn, 9000, 0), 1);
  Packet answer = tcp(1, 1000, down, tcp_syn | tcp_ack, 7000, 9001);
  answer.window_scale = 7;
  conversations.packet(answer, 1);
  conversations.packet(tcp(1, 1000, up, tcp_ack, 9001, 7001), 1);
  const Seen far = conversations.packet(tcp(1, 1000, down, tcp_ack, 7001 + 500'000, 9001, "far"), 1);
  EXPECT_EQ(far.check, TcpCheck::good);
  EXPECT_EQ(far.direction, down);
  EXPECT_TRUE(far.flow->established());
}

}  // namespace
}  // namespace sluice::flow
