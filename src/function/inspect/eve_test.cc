// Whole lines, as they are in the file.
#include "function/inspect/eve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "function/inspect/alert_sample.h"

namespace sluice::function {
namespace {

using flow::Direction;
using nlohmann::json;
using packet::PacketBuilder;
using test::bytes;
using test::lines_of;
using test::Sample;
using testing::ElementsAre;

constexpr const char* rules_text =
    "drop tcp any any -> any 80 (msg:\"An evil \\\"request\\\"\"; content:\"evil\"; classtype:attempted-admin; "
    "metadata:policy max drop, policy strict, created_at 2020_01_02; sid:1001; rev:3;)\n"
    "alert ip any any -> any any (msg:\"Any \xff packet\"; priority:2; gid:7; sid:1002;)\n"
    "alert udp any any -> any any (msg:\"M\xc3\xa4rz\"; sid:1003;)\n";

class EveTest : public testing::Test {
 protected:
  EveTest() { open(true); }
  void open(bool forwards) {
    // No line but those of alerts, all of them, and as they are by default.
    auto log = AlertLog::open({.eve = folder_ / "eve.json",
                               .fast = folder_ / "fast.log",
                               .alerts_per_second = 0,
                               .ring = 16,
                               .stats_seconds = 0,
                               .ports = {"wan", "lan"},
                               .forwards = forwards},
                              1);
    EXPECT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
  }
  AlertLane& lane() { return log_->lane(0); }
  std::vector<std::string> eve() {
    log_->stop();
    return lines_of(folder_ / "eve.json");
  }
  std::vector<std::string> fast() {
    log_->stop();
    return lines_of(folder_ / "fast.log");
  }
  json only_line() {
    const auto lines = eve();
    EXPECT_EQ(lines.size(), 1U);
    return lines.size() == 1 ? json::parse(lines[0]) : json();
  }

  test::Folder folder_;
  std::unique_ptr<AlertLog> log_;
  std::shared_ptr<InspectionRules> rules_ = test::rules_of(rules_text);
};

PacketBuilder request() {
  return PacketBuilder()
      .ipv4("192.0.2.1", "198.51.100.2")
      .tos(8)
      .id(4660)
      .tcp(40000, 80)
      .tcp_flags(packet::tcp_ack | packet::tcp_psh)
      .tcp_sequence(1000, 2000)
      .payload(bytes("GET /evil\r\n\x01"));
}

TEST_F(EveTest, AnAlertOfTcpThatDropsMakesAnAlertAndADrop) {
  Sample sample(rules_, request().build());
  sample.flow(Direction::to_server, FlowMark::http);
  lane().set_port(1);
  lane().alert(sample.alert(0, true, true));
  EXPECT_THAT(
      eve(),
      ElementsAre(
          R"({"timestamp":"2023-11-14T22:13:20.123456+0000","flow_id":1362941452413711,"in_iface":"lan","event_type":"alert",)"
          R"("src_ip":"192.0.2.1","src_port":40000,"dest_ip":"198.51.100.2","dest_port":80,"proto":"TCP",)"
          R"("pkt_src":"wire/pcap","alert":{"action":"blocked","gid":1,"signature_id":1001,"rev":3,)"
          R"("signature":"An evil \"request\"","category":"Attempted Administrator Privilege Gain","severity":1,)"
          R"("metadata":{"policy":["max drop","strict"],"created_at":["2020_01_02"]}},"app_proto":"http",)"
          R"("direction":"to_server","flow":{"pkts_toserver":3,"pkts_toclient":2,"bytes_toserver":180,)"
          R"("bytes_toclient":120,"start":"2023-11-14T22:13:18.623000+0000","src_ip":"192.0.2.1",)"
          R"("dest_ip":"198.51.100.2","src_port":40000,"dest_port":80},"payload":"R0VUIC9ldmlsDQoB",)"
          R"("payload_printable":"GET /evil\r\n.","stream":1})",
          R"({"timestamp":"2023-11-14T22:13:20.123456+0000","flow_id":1362941452413711,"in_iface":"lan","event_type":"drop",)"
          R"("src_ip":"192.0.2.1","src_port":40000,"dest_ip":"198.51.100.2","dest_port":80,"proto":"TCP",)"
          R"("pkt_src":"wire/pcap","direction":"to_server","drop":{"len":52,"tos":8,"ttl":64,"ipid":4660,)"
          R"("tcpseq":1000,"tcpack":2000,"tcpwin":65535,"syn":false,"ack":true,"psh":true,"rst":false,"urg":false,)"
          R"("fin":false,"tcpres":0,"tcpurgp":0,"reason":"rules"},"alert":{"action":"blocked","gid":1,)"
          R"("signature_id":1001,"rev":3,"signature":"An evil \"request\"",)"
          R"("category":"Attempted Administrator Privilege Gain","severity":1}})"));
  EXPECT_THAT(fast(), ElementsAre("11/14/2023-22:13:20.123456  [Drop] [**] [1:1001:3] An evil \"request\" [**] "
                                  "[Classification: Attempted Administrator Privilege Gain] [Priority: 1] {TCP} "
                                  "192.0.2.1:40000 -> 198.51.100.2:80"));
}

TEST_F(EveTest, ARuleThatDropsIsAllowedWhereNothingIsDropped) {
  Sample sample(rules_, request().build());
  lane().alert(sample.alert(0, false));
  EXPECT_EQ(only_line()["alert"]["action"], "allowed");
  EXPECT_THAT(fast()[0], testing::Not(testing::HasSubstr("Drop")));
}

TEST_F(EveTest, WhereNothingIsForwardedARuleWouldDropAndNoFrameIsDropped) {
  log_.reset();
  open(false);
  Sample sample(rules_, request().build());
  lane().alert(sample.alert(0, true, true));
  lane().alert(sample.alert(1, true));
  lane().dropped(sample.dropped(DropReason::rules));
  const auto lines = eve();
  ASSERT_EQ(lines.size(), 2U);
  for (const std::string& line : lines) {
    EXPECT_EQ(json::parse(line)["event_type"], "alert");
    EXPECT_EQ(json::parse(line)["alert"]["action"], "allowed");
  }
  EXPECT_THAT(fast()[0], testing::HasSubstr("  [wDrop] [**] [1:1001:3] "));
  EXPECT_THAT(fast()[1], testing::Not(testing::HasSubstr("rop]"))) << "its rule is one of alert";
}

constexpr const char* post =
    "POST http://Www.Example.ORG:8080/a%20b?c=\xfc HTTP/1.1\r\nHost: Www.Example.ORG:8080\r\nUser-Agent: curl/8\r\n"
    "Referer: http://example.org/\r\nContent-Length: 2\r\n\r\nhi";

// Each: what each side has said, and the line's tx_id and http. The second request is another transaction.
TEST_F(EveTest, HttpIsWhatIsKnownOfTheTransactionByThen) {
  const struct {
    std::vector<std::pair<Direction, std::string>> said;
    int tx_id;
    const char* http;
  } cases[] = {
      {{{Direction::to_server, "GET /evil HTTP/1.1\r\n"}},
       0,
       R"({"http_method":"GET","protocol":"HTTP/1.1","url":"/evil","length":0})"},
      {{{Direction::to_server, post}},
       0,
       R"({"hostname":"www.example.org","http_method":"POST","protocol":"HTTP/1.1",
           "url":"http://Www.Example.ORG:8080/a%20b?c=\\xFC","http_user_agent":"curl/8",
           "http_refer":"http://example.org/","length":0})"},
      {{{Direction::to_server, post},
        {Direction::to_client,
         "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Type: text/html; charset=utf-8\r\n"
         "Content-Length: 5\r\n\r\nhello"}},
       0,
       R"({"hostname":"www.example.org","http_method":"POST","protocol":"HTTP/1.1",
           "url":"http://Www.Example.ORG:8080/a%20b?c=\\xFC","http_content_type":"text/html",
           "http_user_agent":"curl/8","redirect":"/there","http_refer":"http://example.org/","status":302,"length":5})"},
      {{{Direction::to_server, "GET / HTTP/1.1\r\n\r\n"},
        {Direction::to_client, "HTTP/1.1 200 OK\r\nLocation: /there\r\nContent-Length: 2\r\n\r\nok"},
        {Direction::to_server, "GET /2 HTTP/1.0\r\n\r\n"},
        {Direction::to_client, "HTTP/1.1 200 OK\r\nLocation: /there\r\nContent-Length: 9\r\n\r\nok"}},
       1,
       R"({"http_method":"GET","protocol":"HTTP/1.0","url":"/2","status":200,"length":2})"},
      {{{Direction::to_client, "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx"}},
       0,
       R"({"status":404,"length":1})"},
  };
  Sample sample(rules_, request().build());
  sample.flow(Direction::to_server, FlowMark::http);
  for (const auto& one : cases) {
    test::Dialogue dialogue;
    const flow::http::Transaction* transaction = nullptr;
    for (const auto& [direction, bytes] : one.said) {
      transaction = direction == Direction::to_server ? dialogue.client(bytes) : dialogue.server(bytes);
    }
    lane().alert(sample.transaction(transaction).alert(1, false, true));
  }
  lane().alert(sample.transaction(nullptr).alert(1, false, true));
  const auto lines = eve();
  ASSERT_EQ(lines.size(), std::size(cases) + 1);
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const json line = json::parse(lines[i]);
    EXPECT_EQ(line["tx_id"], cases[i].tx_id) << i;
    EXPECT_EQ(line["http"], json::parse(cases[i].http)) << line["http"].dump();
    EXPECT_EQ(line["app_proto"], "http");
  }
  EXPECT_FALSE(json::parse(lines.back()).contains("http"));
  EXPECT_FALSE(json::parse(lines.back()).contains("tx_id"));
}

TEST_F(EveTest, TextsOfHttpAreCutAtTheirBoundsAndAtWholeCharacters) {
  std::string path(510, 'a');
  const std::string host(129, 'h'), agent(257, 'u'), referer(256, 'r');
  test::Dialogue dialogue;
  const auto* const transaction = dialogue.client("GET /" + path + "\xe2\x82\xac HTTP/1.1\r\nHost: " + host +
                                                  "\r\nUser-Agent: " + agent + "\r\nReferer: " + referer + "\r\n\r\n");
  Sample sample(rules_, request().build());
  lane().alert(sample.transaction(transaction).alert(1));
  const json http = only_line()["http"];
  EXPECT_EQ(http["url"], "/" + path) << "the first byte of the character would still fit";
  EXPECT_EQ(http["hostname"], host.substr(0, 128));
  EXPECT_EQ(http["http_user_agent"], agent.substr(0, 256));
  EXPECT_EQ(http["http_refer"], referer.substr(0, 1024 - 128 - 3 - 8 - 512 - 256)) << "all together have 1,024";
  EXPECT_EQ(http["cut"], true);
}

TEST_F(EveTest, AnAlertOfAnotherRuleForADroppedFrameIsAllowed) {
  Sample sample(rules_, request().build());
  lane().alert(sample.alert(1, true));
  EXPECT_EQ(only_line()["alert"]["action"], "allowed");
}

TEST_F(EveTest, UdpWithoutAFlowAndWithoutAClass) {
  Sample sample(
      rules_,
      PacketBuilder().vlan(7).vlan(42).ipv4("192.0.2.1", "192.0.2.9").udp(5353, 53).payload(bytes("\xfe?")).build());
  lane().alert(sample.alert(2));
  EXPECT_THAT(eve(),
              ElementsAre(R"({"timestamp":"2023-11-14T22:13:20.123456+0000","event_type":"alert","vlan":[7,42],)"
                          R"("src_ip":"192.0.2.1","src_port":5353,"dest_ip":"192.0.2.9","dest_port":53,"proto":"UDP",)"
                          R"("pkt_src":"wire/pcap","alert":{"action":"allowed","gid":1,"signature_id":1003,"rev":0,)"
                          "\"signature\":\"M\xc3\xa4rz\","
                          R"("category":"","severity":3},"payload":"/j8=","payload_printable":".?","stream":0})"));
  EXPECT_THAT(fast(),
              ElementsAre("11/14/2023-22:13:20.123456  [**] [1:1003:0] M\xc3\xa4rz [**] [Classification: (null)] "
                          "[Priority: 3] {UDP} 192.0.2.1:5353 -> 192.0.2.9:53"));
}

// What an acknowledgement lets out of the other side's stream has the tags of the frame that brought it, and no more.
TEST_F(EveTest, OfTheOtherDirectionTheFramesTagsAreReported) {
  for (const bool tagged : {false, true}) {
    PacketBuilder builder;
    if (tagged) builder.vlan(7);
    Sample sample(rules_, builder.ipv4("192.0.2.1", "192.0.2.9").tcp(4000, 80).payload(40).build());
    sample.flow().from_other_end();
    lane().alert(sample.alert(1, false, true));
  }
  const auto lines = eve();
  ASSERT_EQ(lines.size(), 2U);
  for (const std::string& text : lines) {
    const json line = json::parse(text);
    EXPECT_EQ(line["src_ip"], "192.0.2.9");
    EXPECT_EQ(line["src_port"], 80);
  }
  EXPECT_FALSE(json::parse(lines[0]).contains("vlan"));
  EXPECT_EQ(json::parse(lines[1])["vlan"], json::array({7}));
}

TEST_F(EveTest, TagsOfAllThreeTypesAreReported) {
  for (const std::uint16_t outer : {0x8100, 0x88a8, 0x9100}) {
    packet::Bytes frame = PacketBuilder().vlan(7).vlan(42).ipv4("192.0.2.1", "192.0.2.9").udp(5353, 53).build();
    packet::header_at<packet::EthernetHeader>(frame.data(), 0).ethertype = packet::be16(outer);
    Sample sample(rules_, frame);
    lane().alert(sample.alert(2));
  }
  for (const std::string& text : eve()) {
    EXPECT_EQ(json::parse(text)["vlan"], json::array({7, 42})) << text;
    EXPECT_EQ(json::parse(text)["dest_port"], 53);
  }
}

TEST_F(EveTest, OfAPacketInATunnelTheOutermostEndsAreReported) {
  Sample sample(rules_, PacketBuilder().ipv4("192.0.2.1", "192.0.2.9").udp(5353, 53).build());
  const TunnelEnds ends{.kind = packet::Tunnel::vxlan,
                        .depth = 1,
                        .family = 4,
                        .protocol = 17,
                        .source_port = 50000,
                        .destination_port = 4789,
                        .source = *packet::IpAddress::parse("198.51.100.1"),
                        .destination = *packet::IpAddress::parse("198.51.100.2")};
  lane().alert(sample.in_tunnel(&ends).alert(1));
  const json line = only_line();
  EXPECT_EQ(line["src_ip"], "192.0.2.1");
  EXPECT_EQ(line["pkt_src"], "vxlan encapsulation");
  EXPECT_EQ(line["tunnel"].dump(), R"({"depth":1,"dest_ip":"198.51.100.2","dest_port":4789,"pkt_src":"wire/pcap",)"
                                   R"("proto":"UDP","src_ip":"198.51.100.1","src_port":50000})");
}

// MPLS and PPPoE have no ends.
TEST_F(EveTest, OfATunnelWithoutIpThereAreNone) {
  Sample sample(rules_, PacketBuilder().ipv4("192.0.2.1", "192.0.2.9").udp(5353, 53).build());
  const TunnelEnds ends{.kind = packet::Tunnel::mpls, .depth = 1, .source = {}, .destination = {}};
  lane().alert(sample.in_tunnel(&ends).alert(1));
  const json line = only_line();
  EXPECT_EQ(line["pkt_src"], "wire/pcap");
  EXPECT_FALSE(line.contains("tunnel"));
}

TEST_F(EveTest, IcmpHasTypeAndCodeAndNoPorts) {
  Sample sample(rules_, PacketBuilder().ipv4("192.0.2.1", "192.0.2.9").icmp(8, 3, 0x00050006).payload(2).build());
  sample.flow();
  lane().alert(sample.alert(1));
  const json line = only_line();
  EXPECT_EQ(line["proto"], "ICMP");
  EXPECT_EQ(line["src_port"], 0);
  EXPECT_EQ(line["icmp_type"], 8);
  EXPECT_EQ(line["icmp_code"], 3);
  EXPECT_FALSE(line["flow"].contains("src_port"));
  EXPECT_FALSE(line.contains("app_proto"));
  EXPECT_THAT(fast(), ElementsAre("11/14/2023-22:13:20.123456  [**] [7:1002:0] Any \xff packet [**] [Classification: "
                                  "(null)] [Priority: 2] {ICMP} 192.0.2.1:8 -> 192.0.2.9:3"));
}

TEST_F(EveTest, Ipv6IsWrittenWithAllDigitsAndADropHasItsOwnFields) {
  Sample sample(rules_, PacketBuilder().ipv6("2001:db8::1", "fe80::2").tos(3).ttl(9).icmp6(128, 0, 0x00050006).build());
  sample.flow(Direction::to_client);
  lane().dropped(sample.dropped(DropReason::flow_drop));
  EXPECT_THAT(
      eve(),
      ElementsAre(
          R"({"timestamp":"2023-11-14T22:13:20.123456+0000","flow_id":1362941452413711,"event_type":"drop",)"
          R"("src_ip":"2001:0db8:0000:0000:0000:0000:0000:0001","src_port":0,)"
          R"("dest_ip":"fe80:0000:0000:0000:0000:0000:0000:0002","dest_port":0,"proto":"IPv6-ICMP","icmp_type":128,)"
          R"("icmp_code":0,"pkt_src":"wire/pcap","direction":"to_client","drop":{"len":8,"tc":3,"hoplimit":9,)"
          R"("flowlbl":0,"icmp_id":5,"icmp_seq":6,"reason":"flow drop"}})"));
  EXPECT_THAT(fast(), ElementsAre()) << "a drop is no alert";
}

TEST_F(EveTest, ADropOfUdpHasItsLengthAndABudgetIsAReason) {
  Sample sample(rules_, PacketBuilder().ipv4("192.0.2.1", "192.0.2.9").udp(1, 2).payload(5).build());
  lane().dropped(sample.dropped(DropReason::budget));
  const json line = only_line();
  EXPECT_EQ(line["drop"]["udplen"], 13);
  EXPECT_EQ(line["drop"]["reason"], "inspection budget");
  EXPECT_FALSE(line.contains("alert"));
}

TEST_F(EveTest, ADropWithoutAnAlertNamesItsRule) {
  Sample sample(rules_, request().build());
  DroppedFrame frame = sample.dropped(DropReason::rules);
  frame.rules = rules_.get();
  frame.rule = 1;
  lane().dropped(frame);
  const json line = only_line();
  EXPECT_EQ(line["event_type"], "drop");
  EXPECT_EQ(line["drop"]["reason"], "rules");
  EXPECT_EQ(line["alert"]["signature_id"], rules_->detector().rules().rules[1].sid);
  EXPECT_EQ(line["alert"]["action"], "blocked");
  EXPECT_FALSE(line["alert"].contains("metadata"));
}

TEST_F(EveTest, ADropHasSuricataSReason) {
  const auto fragment = PacketBuilder().ipv4("192.0.2.1", "192.0.2.9").fragment(64, true).payload(8).build();
  struct Case {
    DropReason why;
    const char* said;
    const packet::Bytes& frame;
  };
  const auto whole = request().build();
  const std::vector<Case> cases = {{DropReason::fragment, "defrag error", fragment},
                                   {DropReason::outside, "stream error", whole},
                                   {DropReason::silent, "stream midstream", whole},
                                   {DropReason::http_limit, "applayer error", whole}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Sample sample(rules_, cases[i].frame);
    DroppedFrame dropped = sample.dropped(cases[i].why);
    dropped.microseconds += i;  // another frame
    lane().dropped(dropped);
  }
  const auto lines = eve();
  ASSERT_EQ(lines.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(json::parse(lines[i])["drop"]["reason"], cases[i].said);
  }
}

TEST_F(EveTest, BothDirectionsHaveTheFlowSIdAndItsClientFirst) {
  Sample there(rules_, request().build());
  there.flow(Direction::to_server);
  Sample back(rules_, PacketBuilder().ipv4("198.51.100.2", "192.0.2.1").tcp(80, 40000).build());
  back.flow(Direction::to_client);
  lane().alert(there.alert(1));
  lane().alert(back.alert(1));
  const auto lines = eve();
  ASSERT_EQ(lines.size(), 2U);
  const json a = json::parse(lines[0]), b = json::parse(lines[1]);
  EXPECT_EQ(a["flow_id"], b["flow_id"]);
  EXPECT_EQ(a["flow"], b["flow"]);
  EXPECT_EQ(b["direction"], "to_client");
  EXPECT_EQ(b["src_ip"], "198.51.100.2");
}

TEST_F(EveTest, WhatIsFoundWhenAStreamEndsIsOfItsFlowAndNotOfThePacketThatCameThen) {
  Sample sample(rules_, request().build());
  sample.flow(Direction::to_client);
  Alert at_end = sample.alert(0, true, true);
  const flow::Flow flow = *at_end.flow;
  at_end.frame = {};
  at_end.payload = "evil";
  lane().alert(at_end);
  Sample other(rules_, PacketBuilder().ipv4("203.0.113.1", "203.0.113.2").udp(1, 2).payload(5).build());
  Alert meanwhile = other.alert(0, false, true);
  meanwhile.flow = &flow;
  meanwhile.direction = Direction::to_client;
  lane().alert(meanwhile);
  const auto lines = eve();
  ASSERT_EQ(lines.size(), 2U) << "no frame, no drop event";
  for (const std::string& text : lines) {
    const json line = json::parse(text);
    EXPECT_EQ(line["src_ip"], "192.0.2.1");  // to_client: the flow's server
    EXPECT_EQ(line["src_port"], 40000);
    EXPECT_EQ(line["dest_ip"], "198.51.100.2");
    EXPECT_EQ(line["proto"], "TCP");
    EXPECT_EQ(line["pkt_src"], "stream (flow timeout)");
  }
}

// Its flow is that of all its datagram's fragments, and has no ports.
TEST_F(EveTest, AFirstFragmentHasItsPorts) {
  const auto rules = test::rules_of("drop udp any any -> any 5555 (content:\"evildgram\"; sid:1;)\n");
  InspectionSettings settings;
  flow::ConversationSettings& tables = settings.conversations;
  tables.flows.capacity = 64;
  tables.extras = tables.http_connections = tables.http_transactions = 4;
  tables.stream_bytes = tables.http_bytes = settings.fragments.memory = 1 << 20;
  Inspection inspection(std::make_unique<InspectionSearch>(rules), settings, lane());
  const auto ipv6 = [] { return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2"); };
  const std::string text = "an evildgram   .";
  packet::Bytes behind_options{packet::protocol_udp, 0, 1, 4, 0, 0, 0, 0, 15, 160, 21, 179, 1, 0, 0, 0};
  behind_options.insert(behind_options.end(), text.begin(), text.end());
  for (const auto& frame :
       {PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").udp(4000, 5555).payload(bytes(text)).fragment(0, true),
        ipv6().udp(4000, 5555).payload(bytes(text)).fragment(0, true),
        ipv6().protocol(packet::protocol_destination_options).payload(behind_options).fragment(0, true)}) {
    EXPECT_TRUE(inspection.frame(test::view(frame.build()), test::sample_time).drop);
  }
  const auto lines = eve();
  ASSERT_EQ(lines.size(), 6U);
  for (const std::string& one : lines) {
    const json line = json::parse(one);
    EXPECT_EQ(line["src_port"], 4000) << one;
    EXPECT_EQ(line["dest_port"], 5555) << one;
    EXPECT_EQ(line["pkt_src"], "wire/pcap") << one;
  }
  ASSERT_EQ(fast().size(), 3U);
  EXPECT_THAT(fast()[0], testing::HasSubstr("{UDP} 192.0.2.1:4000 -> 192.0.2.2:5555"));
}

TEST_F(EveTest, ATargetIsNamedWithItsSourceAndIsNoMetadata) {
  const auto rules = test::rules_of(
      "drop tcp any any -> any any (target:src_ip; metadata:policy drop; sid:1;)\n"
      "alert ip any any -> any any (target:dest_ip; sid:2;)\n");
  Sample tcp(rules, request().build());
  Sample icmp(rules, PacketBuilder().ipv4("192.0.2.1", "192.0.2.9").icmp(8, 3, 0x00050006).payload(2).build());
  lane().alert(tcp.alert(0, true, true));
  lane().alert(icmp.alert(1));
  const auto lines = eve();
  ASSERT_EQ(lines.size(), 3U);
  const json client = {{"ip", "192.0.2.1"}, {"port", 40000}}, server = {{"ip", "198.51.100.2"}, {"port", 80}};
  for (const std::size_t of_tcp : {0, 1}) {
    const json alert = json::parse(lines[of_tcp])["alert"];
    EXPECT_EQ(alert["source"], server) << lines[of_tcp];
    EXPECT_EQ(alert["target"], client) << lines[of_tcp];
  }
  EXPECT_EQ(json::parse(lines[0])["alert"]["metadata"], json::parse(R"({"policy":["drop"]})"));
  const json alert = json::parse(lines[2])["alert"];
  EXPECT_EQ(alert["source"], json::parse(R"({"ip":"192.0.2.1"})"));
  EXPECT_EQ(alert["target"], json::parse(R"({"ip":"192.0.2.9"})"));
  EXPECT_FALSE(alert.contains("metadata"));
}

TEST_F(EveTest, BytesThatAreNoTextAreEscapedAndEveryLineIsJson) {
  std::string rules;
  const std::string odd[] = {"\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                             "\xe2\x82", "\x7f\x1b[31m", "\xf0\x9f\x98\x80"};
  std::uint32_t sid = 1;
  for (const std::string& text : odd) {
    rules += "alert ip any any -> any any (msg:\"" + text + "\"; metadata:k" + text + " v" + text +
             "; sid:" + std::to_string(sid++) + ";)\n";
  }
  Sample sample(test::rules_of(rules), request().payload(bytes("\xc0\n\"\\\xff\x7f")).build());
  for (std::uint32_t i = 0; i < std::size(odd); ++i) lane().alert(sample.alert(i));
  const auto lines = eve();
  ASSERT_EQ(lines.size(), std::size(odd));
  std::vector<std::string> signatures;
  for (const std::string& line : lines) {
    const json parsed = json::parse(line);
    signatures.push_back(parsed["alert"]["signature"]);
    EXPECT_EQ(parsed["payload_printable"], ".\n\"\\..");
    EXPECT_EQ(parsed["payload"], "wAoiXP9/");
  }
  EXPECT_THAT(signatures, ElementsAre("\\xC0\\xAF", "\\xED\\xA0\\x80", "\\xF5\\x80\\x80\\x80", "\\xE2\\x82",
                                      "\x7f\x1b[31m", "\xf0\x9f\x98\x80"));
  EXPECT_EQ(json::parse(lines[0])["alert"]["metadata"], json::parse(R"({"k\\xC0\\xAF":["v\\xC0\\xAF"]})"));
  EXPECT_THAT(fast()[4], testing::HasSubstr("] ..[31m [**]"));
}

}  // namespace
}  // namespace sluice::function
