#include "flow/conversations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flow/conversations_trial_test.h"
#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using namespace test;

TEST(Conversations, FromPacketsToTransactions) {
  test::Recorder recorder;
  {
    Conversations conversations(small(), recorder);
    converse(conversations, 1, get, ok, 0);
    ASSERT_EQ(recorder.exchanges.size(), 1U);
    EXPECT_EQ(recorder.exchanges[0].uri, "/x");
    EXPECT_EQ(recorder.exchanges[0].response_body, "body");
    EXPECT_EQ(recorder.exchanges[0].events, "lhcLHBC") << "complete with the server's FIN";
    EXPECT_EQ(recorder.bytes[0], get);
    EXPECT_EQ(recorder.bytes[1], ok);
    EXPECT_EQ(conversations.extras_in_use(), 1U);
    conversations.flush();
    EXPECT_EQ(conversations.extras_in_use(), 0U);
    EXPECT_EQ(conversations.stream_pool().in_use(), 0U);
    EXPECT_EQ(conversations.http_pool().in_use(), 0U);
  }
  EXPECT_EQ(recorder.ends, std::vector{FlowEndReason::flushed});
}

TEST(Conversations, AFlowThatIsCutOffCompletesItsTransaction) {
  test::Recorder recorder;
  Conversations conversations(small(), recorder);
  converse(conversations, 1, get, ok, 0, false);
  EXPECT_EQ(recorder.exchanges.at(0).events, "lhcLHB");
  conversations.table().sweep(10'000'000, 64);
  EXPECT_EQ(recorder.exchanges[0].events, "lhcLHBC");
  EXPECT_EQ(recorder.ends, std::vector{FlowEndReason::expired});
  EXPECT_EQ(conversations.http_pool().in_use(), 0U);
}

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
    settings.streams.drop_conflicts = settings.streams.drop_without_room = true;
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
      for (const bool room : {true, false}) {
        ConversationSettings settings = small();
        settings.streams.drop_conflicts = conflicts;
        settings.streams.drop_without_room = room;
        Refusals sink;
        Conversations conversations(settings, sink);
        converse(conversations, 1, "hello", "", 0, false);
        const test::Step& s = c.step;
        conversations.packet(tcp(1, 1000, s.direction, s.flags, s.sequence, s.acknowledgment, s.text), 0);
        const bool refused = c.refused && (conflicts || room);
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
    settings.streams.drop_conflicts = settings.streams.drop_without_room = true;
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
      settings.streams.drop_conflicts = settings.streams.drop_without_room = drop;
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

struct Windows final : ConversationSink {
  void stream_data(Flow&, Extra&, Direction, const StreamData&) override {}
  void stream_gap(Flow&, Extra&, Direction, std::uint64_t) override {}
  void http(Flow& flow, Extra&, http::Event event, http::Transaction&) override {
    const Direction direction = event >= http::Event::response_line ? down : up;
    all.emplace_back(event, conversations->window(flow, direction));
  }
  void http_stopped(Flow&, Extra&, http::StopReason) override {}
  void flow_ended(Flow&, Extra*, FlowEndReason) override {}
  Conversations* conversations = nullptr;
  std::vector<std::pair<http::Event, std::string>> all;
};

// Of what waited nothing is left when the stream closes behind it, but what is kept of it.
TEST(Conversations, TheWindowOfAnEventIsOfItsDirectionAndThere) {
  for (const std::uint32_t window : {0U, 8U}) {
    ConversationSettings settings = small();
    settings.streams.window = window;
    Windows sink;
    Conversations conversations(settings, sink);
    sink.conversations = &conversations;
    converse(conversations, 1, get, ok, 0, false);
    EXPECT_EQ(sink.all.back().second, ok);
    const auto next = 501 + static_cast<std::uint32_t>(ok.size()), size = static_cast<std::uint32_t>(get.size());
    conversations.packet(tcp(1, 1000, down, tcp_ack | tcp_fin, next + 3, 101 + size, "that waited"), 0);
    const std::size_t before = sink.all.size();
    conversations.packet(tcp(1, 1000, down, tcp_ack, next, 101 + size, "all"), 0);
    ASSERT_EQ(sink.all.size(), before + 3);
    EXPECT_EQ(sink.all[before].second, window == 0 ? "all" : "\r\n\r\nbodyall");
    EXPECT_EQ(sink.all[before + 1].second, window == 0 ? "that waited" : "\nbodyallthat waited");
    EXPECT_EQ(sink.all[before + 2].first, http::Event::response_complete);
    EXPECT_EQ(sink.all[before + 2].second, window == 0 ? "" : "t waited");
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

TEST(Conversations, OtherProtocolsGiveTheirParserBack) {
  ConversationSettings settings = small();
  settings.http_connections = 1;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  for (std::uint32_t i = 1; i < 6; ++i) {
    converse(conversations, i, "\x16\x03\x01 hello", "\x16\x03\x03 hello", 0);
  }
  EXPECT_EQ(recorder.stops, std::vector<http::StopReason>(5, http::StopReason::not_http));
  EXPECT_EQ(conversations.http_counters().connections, 5U);
}

// HTTP that goes by while `goes_by` is set; what the parser makes of the rest.
struct GoingBy final : ConversationSink {
  void stream_data(Flow&, Extra&, Direction direction, const StreamData& data) override {
    bytes[static_cast<unsigned>(direction)] += data.fresh;
  }
  void stream_gap(Flow&, Extra&, Direction, std::uint64_t) override { ++gaps; }
  bool http_goes_by(Flow&, bool) override { return goes_by; }
  void http(Flow&, Extra&, http::Event event, http::Transaction& transaction) override {
    if (event == http::Event::request_line) uris.emplace_back(transaction.uri_raw());
    if (event == http::Event::request_body) body = transaction.request.body_view();
  }
  void http_stopped(Flow&, Extra&, http::StopReason reason) override { stops.push_back(reason); }
  void flow_ended(Flow&, Extra*, FlowEndReason) override {}
  bool goes_by = false;
  unsigned gaps = 0;
  std::string bytes[2], body;
  std::vector<std::string> uris;
  std::vector<http::StopReason> stops;
};

// To the byte: a request behind a body that went by is not taken for a part of it, nor the body for a request. And what
// has gone by from the beginning is no HTTP: bytes within it are not taken for a request that nobody has made.
TEST(Conversations, WhatGoesByHttpIsAGapOfItsSize) {
  struct Piece {
    std::string text;
    bool goes_by = false;
  };
  struct Case {
    const char* what;
    std::vector<Piece> pieces;
    std::vector<std::string> uris;
    std::string body;
    std::vector<http::StopReason> stops;
  };
  const std::string post = "POST /p HTTP/1.1\r\nContent-Length: 10\r\n\r\n", next = "GET /n HTTP/1.1\r\n\r\n";
  const std::string chunked = "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::vector<http::StopReason> by_gap{http::StopReason::gap};
  const Case cases[] = {
      {"within a body", {{post + "012"}, {"3456", true}, {"789" + next}}, {"/p", "/n"}, "012789", {}},
      {"a body's end", {{post + "012"}, {"3456789", true}, {next}}, {"/p", "/n"}, "012", {}},
      {"a whole body", {{post}, {"0123456789", true}, {next}}, {"/p", "/n"}, "", {}},
      {"in pieces", {{post}, {"01234", true}, {"5678", true}, {"9" + next}}, {"/p", "/n"}, "9", {}},
      {"a chunk's end", {{chunked + "4\r\n01"}, {"23", true}, {"\r\n0\r\n\r\n" + next}}, {"/p", "/n"}, "01", {}},
      {"a body and more", {{post}, {"0123456789G", true}, {next.substr(1)}}, {"/p"}, "", by_gap},
      {"headers", {{"GET /p HTTP/1.1\r\n"}, {"Host: x\r\n\r\n", true}, {next}}, {"/p"}, "", by_gap},
      {"the beginning", {{post, true}, {next}}, {}, "", by_gap},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    GoingBy sink;
    Conversations conversations(small(), sink);
    conversations.packet(tcp(1, 1000, up, tcp_syn, 100, 0), 0);
    conversations.packet(tcp(1, 1000, down, tcp_syn | tcp_ack, 500, 101), 0);
    std::uint32_t sequence = 101;
    std::string sent;
    for (const Piece& piece : c.pieces) {
      sink.goes_by = piece.goes_by;
      conversations.packet(tcp(1, 1000, up, tcp_ack, sequence, 501, piece.text), 0);
      sequence += static_cast<std::uint32_t>(piece.text.size());
      sent += piece.text;
    }
    EXPECT_EQ(sink.uris, c.uris);
    EXPECT_EQ(sink.body, c.body);
    EXPECT_EQ(sink.stops, c.stops);
    EXPECT_EQ(sink.bytes[0], sent) << "its stream has all of it";
    EXPECT_EQ(sink.gaps, 0U);
  }
}

TEST(Conversations, FlowBits) {
  test::Recorder recorder;
  Conversations conversations(small(), recorder);
  Packet udp = tcp(1, 1000, up, 0, 0, 0);
  udp.protocol = packet::protocol_udp;
  const Seen seen = conversations.packet(udp, 0);
  EXPECT_EQ(conversations.extra_if_any(*seen.flow), nullptr);
  Extra* const extra = conversations.extra_of(*seen.flow);
  ASSERT_NE(extra, nullptr);
  EXPECT_EQ(conversations.extra_of(*seen.flow), extra);
  EXPECT_EQ(extra->bits, decltype(extra->bits){});
  extra->bits.back() = 1;
  conversations.flush();
  const Seen again = conversations.packet(udp, 0);
  EXPECT_EQ(conversations.extra_of(*again.flow)->bits.back(), 0U) << "a new flow has none of the old one's";
}

// When rules are exchanged: of a flow when it is asked about the next time, so that a lane does not go through all.
TEST(Conversations, FlowBitsAreClearedAsFlowsAreAskedAbout) {
  test::Recorder recorder;
  Conversations conversations(small(), recorder);
  const auto extra_of = [&](std::uint32_t client) {
    Packet udp = tcp(client, 1000, up, 0, 0, 0);
    udp.protocol = packet::protocol_udp;
    return conversations.extra_of(*conversations.packet(udp, 0).flow);
  };
  using Bits = Extra::Bits;
  constexpr std::size_t last = std::tuple_size_v<Bits> - 1;
  const auto bits = [](std::uint64_t first_word, std::uint64_t last_word = 0) {
    Bits made{};
    made[0] = first_word;
    made[last] = last_word;
    return made;
  };
  Extra* const asked = extra_of(1);
  Extra* const silent = extra_of(2);
  ASSERT_TRUE(asked != nullptr && silent != nullptr);
  for (Extra* const extra : {asked, silent}) conversations.bits_of(*extra) = bits(0b0111, 1ULL << 63);
  conversations.clear_bits(bits(0b0001, 1ULL << 63));
  EXPECT_EQ(asked->bits, bits(0b0111, 1ULL << 63)) << "nobody has asked";
  EXPECT_EQ(conversations.bits_of(*asked), bits(0b0110));
  conversations.bits_of(*asked)[0] |= 0b0001;
  EXPECT_EQ(conversations.bits_of(*asked), bits(0b0111)) << "set since";
  conversations.clear_bits(bits(0b0010));
  EXPECT_EQ(conversations.bits_of(*asked), bits(0b0101));
  EXPECT_EQ(conversations.bits_of(*silent), bits(0b0100)) << "cleared twice meanwhile";
  EXPECT_EQ(conversations.bits_of(*extra_of(3)), Bits{});
  // However often: some times all flows are gone through.
  conversations.bits_of(*silent) = bits(0b1100);
  for (int i = 0; i < 70'000; ++i) {
    conversations.clear_bits(bits(0b1000));
    if (i == 69'000) conversations.bits_of(*asked) = bits(0b1101);
  }
  EXPECT_EQ(conversations.bits_of(*silent), bits(0b0100));
  EXPECT_EQ(conversations.bits_of(*asked), bits(0b0101));
}

// Whatever a sender does, memory stays what it was at start, and nothing that a flow held stays behind.
TEST(Conversations, ManyConversationsLeaveNothingBehind) {
  ConversationSettings settings = small();
  settings.flows.midstream = true;
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  const std::uint64_t memory = conversations.memory_bytes();
  EXPECT_GE(memory, Conversations::memory_bytes(settings));
  EXPECT_LE(memory, Conversations::memory_bytes(settings) * 102 / 100);
  std::uint64_t random = 5;
  for (int i = 0; i < 30'000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const auto client = static_cast<std::uint32_t>(random >> 60);
    const auto flags = static_cast<std::uint8_t>(random >> 50 & (tcp_syn | tcp_ack | tcp_fin));
    const std::string_view text = std::string_view(get).substr(0, random >> 45 & 15);
    const Direction direction = (random >> 44 & 1) != 0 ? up : down;
    const auto sequence = static_cast<std::uint32_t>(random >> 32 & 0xff);
    conversations.packet(tcp(client, 1000, direction, (random >> 30 & 63) == 0 ? tcp_rst : flags, sequence, 50, text),
                         static_cast<Milliseconds>(i));
  }
  EXPECT_EQ(conversations.memory_bytes(), memory);
  EXPECT_GT(recorder.ends.size(), 100U);
  conversations.flush();
  EXPECT_EQ(conversations.extras_in_use(), 0U);
  EXPECT_EQ(conversations.stream_pool().in_use(), 0U);
  EXPECT_EQ(conversations.http_pool().in_use(), 0U);
}

}  // namespace
}  // namespace sluice::flow
