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
