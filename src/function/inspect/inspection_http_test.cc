// HTTP in conversations with rules: bodies as they grow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/inspect/inspection.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack, fin = packet::tcp_fin;

class InspectionHttpTest : public testing::Test, public AlertSink {
 protected:
  void use(const std::string& text, const InspectionSettings& given = {}) {
    auto set = match::read_rules_text(text, "test.rules");
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_THAT(set->refused, IsEmpty()) << set->refused[0].message;
    auto rules = InspectionRules::make(std::move(*set));
    ASSERT_TRUE(rules) << rules.error().message;
    InspectionSettings settings = given;
    settings.conversations.flows.capacity = 1024;
    settings.conversations.extras = 64;
    settings.conversations.http_connections = 16;
    settings.conversations.http_transactions = 32;
    settings.conversations.stream_bytes = settings.conversations.http_bytes = 4 << 20;
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(*rules), settings, *this);
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    segment(true, syn);
    segment(false, syn | ack);
    segment(true, ack);
  }
  void alert(const Alert& alert) override { sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid); }
  Judgement segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    std::uint32_t& mine = sequence_[to_server ? 0 : 1];
    PacketBuilder builder;
    to_server ? builder.ipv4("10.0.0.1", "10.0.0.2").tcp(4000, 80) : builder.ipv4("10.0.0.2", "10.0.0.1").tcp(80, 4000);
    builder.tcp_flags(flags).tcp_sequence(mine, (flags & ack) != 0 ? sequence_[to_server ? 1 : 0] : 0);
    builder.payload(Bytes(text.begin(), text.end()));
    mine += static_cast<std::uint32_t>(text.size()) + ((flags & (syn | fin)) != 0 ? 1 : 0);
    const Bytes bytes = builder.build();
    return inspection_->frame({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, now_ += 1000);
  }
  void request() { segment(true, ack, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); }
  void response(const std::string& text) { segment(false, ack, text); }
  void post(const std::string& text) { segment(true, ack, text); }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }

  std::unique_ptr<Inspection> inspection_;
  std::vector<std::uint32_t> sids_;
  std::uint32_t sequence_[2] = {1000, 5000};
  std::uint64_t now_ = 0;  // microseconds
};

// Contents in any order and across pieces, each rule once, though the last byte never comes.
TEST_F(InspectionHttpTest, a_body_is_inspected_as_it_grows) {
  use("alert http any any -> any any (file_data; content:\"first part\"; content:\"two\"; sid:1;)\n"
      "drop http any any -> any any (flow:to_client; file_data; content:\"evil\"; sid:2;)\n"
      "alert http any any -> any any (content:\"posted\"; http_client_body; content:\"ab\"; http_uri; sid:3;)\n"
      "alert http any any -> any any (file_data; pcre:\"/t[w]o+ /\"; sid:4;)\n");
  post("POST /ab HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\npos");
  EXPECT_THAT(alerts(), IsEmpty());
  post("ted");
  EXPECT_THAT(alerts(), ElementsAre(3));
  post("posted");
  EXPECT_THAT(alerts(), IsEmpty());
  response("HTTP/1.1 200 ok\r\nContent-Length: 1000\r\n\r\nthe fir");
  response("st part");
  response(", and then ");
  EXPECT_THAT(alerts(), IsEmpty());
  response("two ");
  EXPECT_THAT(alerts(), ElementsAre(1, 4));
  response("two first part ev");
  EXPECT_THAT(alerts(), IsEmpty());
  EXPECT_TRUE(segment(false, ack, "il").drop);
  EXPECT_THAT(alerts(), ElementsAre(2));
}

TEST_F(InspectionHttpTest, what_a_bodys_end_may_refute_waits_for_it) {
  use("alert http any any -> any any (file_data; content:\"ab\"; content:!\"cd\"; within:2; sid:1;)\n"
      "alert http any any -> any any (file_data; content:\"ab\"; endswith; sid:2;)\n"
      "alert http any any -> any any (file_data; content:\"ab\"; isdataat:!2,relative; sid:3;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 6\r\n\r\nxxab");
  EXPECT_THAT(alerts(), IsEmpty());
  response("cd");
  EXPECT_THAT(alerts(), IsEmpty());
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 6\r\n\r\nxxxx");
  response("ab");
  EXPECT_THAT(alerts(), ElementsAre(1, 2, 3));
}

TEST_F(InspectionHttpTest, a_bodys_limit_is_an_end_of_it) {
  InspectionSettings settings;
  settings.conversations.http.response_body_limit = 100;
  use("alert http any any -> any any (file_data; content:\"ab\"; content:!\"cd\"; sid:1;)\n", settings);
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 1000\r\n\r\nab" + std::string(98, 'x'));
  EXPECT_THAT(alerts(), IsEmpty());
  response("x");
  EXPECT_THAT(alerts(), ElementsAre(1));
  response(std::string(899, 'x'));
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionHttpTest, headers_without_a_direction_are_those_of_both_messages) {
  use("alert http any any -> any any (content:\"Evil\"; http_header; sid:1;)\n"
      "alert http any any -> any any (content:\"Evil\"; http_header; content:\"/\"; http_uri; sid:2;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nServer: Evil\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1));
  post("GET / HTTP/1.1\r\nUser-Agent: Evil\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1, 2));
  response("HTTP/1.1 200 ok\r\nServer: Evil\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// Traffic without candidates is not concerned by the time that confirming may take.
TEST_F(InspectionHttpTest, without_time_bodies_are_searched_and_go_on) {
  use("alert http any any -> any any (file_data; content:\"first\"; content:\"two\"; sid:2;)\n");
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 100\r\n\r\nfir");
  inspection_->begin(0);
  response("an ordinary piece");
  EXPECT_EQ(inspection_->counters().left, 0U);
  EXPECT_EQ(inspection_->counters().overloaded, 0U);
}
// More patterns than are remembered: the whole body is searched each time.
TEST_F(InspectionHttpTest, a_body_of_many_patterns_is_inspected_as_it_grows) {
  std::string rules, body;
  std::vector<std::uint32_t> all;
  for (unsigned i = 1; i <= 20; ++i) {
    const std::string number = std::to_string(100 + i);
    rules += "alert http any any -> any any (file_data; content:\"pattern" + number +
             "\"; content:\"last\"; sid:" + number + ";)\n";
    body += "pattern" + number;
    all.push_back(100 + i);
  }
  use(rules);
  request();
  response("HTTP/1.1 200 ok\r\nContent-Length: 1000\r\n\r\n" + body);
  response("la");
  EXPECT_THAT(alerts(), IsEmpty());
  response("st");
  EXPECT_EQ(alerts(), all);
  response("and more");
  segment(false, fin | ack);
  EXPECT_THAT(alerts(), IsEmpty());
}

}  // namespace
}  // namespace sluice::function
