#include "match/detect/detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "match/automaton/cpu_matcher.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::match {
namespace {

using packet::Bytes;
using packet::PacketBuilder;

// Rules over packets, as a gateway would run them: matched on the CPU, then confirmed.
class DetectorTest : public testing::Test {
 protected:
  void use(const std::string& rules) {
    auto set = read_rules_text(rules, "test.rules");
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_THAT(set->refused, testing::IsEmpty());
    auto made = Detector::make(std::move(*set));
    ASSERT_TRUE(made) << made.error().message;
    detector_ = std::move(*made);
    matcher_ = std::move(CpuMatcher::create(detector_->patterns(Buffer::payload)).value());
  }

  // The sids that hold.
  std::vector<std::uint32_t> sids(const PacketBuilder& builder, FlowBits* bits = nullptr, std::uint32_t budget = 100) {
    const Bytes frame = builder.build();
    const PacketFacts facts = facts_of({reinterpret_cast<const char*>(frame.data()), frame.size()});
    CpuMatcher::Scratch matching(*matcher_);
    std::vector<std::uint32_t> found(detector_->patterns(Buffer::payload).size());
    found.resize(
        matcher_->match(matching, facts.payload, detector_->classes().class_of(facts), found.data(), found.size()));
    Buffers buffers;
    buffers.set(Buffer::payload, facts.payload);
    Detector::Scratch scratch(*detector_);
    std::vector<std::uint32_t> matched, out;
    outcome_ = detector_->inspect(Point::packet, facts, {}, bits, buffers, {found, false, facts.payload.size()},
                                  {budget}, scratch, matched);
    for (const std::uint32_t rule : matched) out.push_back(detector_->rules().rules[rule].sid);
    return out;
  }

  static PacketBuilder tcp(std::uint16_t source, std::uint16_t destination, const std::string& payload) {
    return PacketBuilder()
        .ipv4("10.0.0.1", "10.0.0.2")
        .tcp(source, destination)
        .payload(Bytes(payload.begin(), payload.end()));
  }

  std::unique_ptr<Detector> detector_;
  std::unique_ptr<CpuMatcher> matcher_;
  Detector::Outcome outcome_;
};

TEST_F(DetectorTest, HeaderPatternAndTheRestMustHold) {
  use("alert tcp any any -> any 80 (content:\"evil\"; pcre:\"/evil[0-9]/\"; sid:1;)\n"
      "alert tcp any any -> any any (content:\"evil\"; sid:2;)\n"
      "alert tcp any any -> any any (dsize:3; sid:3;)\n"
      "alert udp any any -> any any (content:\"evil\"; sid:4;)\n");
  EXPECT_THAT(sids(tcp(1000, 80, "an evil9 one")), testing::ElementsAre(1, 2));
  EXPECT_THAT(sids(tcp(1000, 80, "an evil one")), testing::ElementsAre(2));
  EXPECT_THAT(sids(tcp(1000, 81, "evil9")), testing::ElementsAre(2));
  EXPECT_THAT(sids(tcp(80, 1000, "abc")), testing::ElementsAre(3));
  EXPECT_THAT(sids(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload(Bytes{'e', 'v', 'i', 'l'})),
              testing::ElementsAre(4));
}

TEST_F(DetectorTest, TreatsRulesByActionThenPriorityThenPlace) {
  use("alert tcp any any -> any any (content:\"x\"; priority:2; sid:1;)\n"
      "alert tcp any any -> any any (content:\"x\"; priority:1; sid:2;)\n"
      "alert tcp any any -> any any (content:\"x\"; priority:1; sid:3;)\n"
      "drop tcp any any -> any any (content:\"x\"; priority:3; sid:4;)\n");
  EXPECT_THAT(sids(tcp(1, 2, "x")), testing::ElementsAre(4, 2, 3, 1));
}

TEST_F(DetectorTest, APassRuleEndsIt) {
  use("drop tcp any any -> any any (content:\"evil\"; sid:1;)\n"
      "pass tcp any any -> any any (content:\"fine\"; sid:2;)\n");
  EXPECT_THAT(sids(tcp(1, 2, "evil")), testing::ElementsAre(1));
  EXPECT_THAT(sids(tcp(1, 2, "evil but fine")), testing::ElementsAre(2));
}

TEST_F(DetectorTest, FlowbitsAreSetByOnePacketAndAskedByTheNext) {
  use("alert tcp any any -> any any (content:\"one\"; flowbits:set,a; flowbits:noalert; sid:1;)\n"
      "alert tcp any any -> any any (content:\"two\"; flowbits:isset,a; sid:2;)\n"
      "alert tcp any any -> any any (content:\"two\"; flowbits:isnotset,a; sid:3;)\n");
  FlowBits bits{};
  EXPECT_THAT(sids(tcp(1, 2, "two"), &bits), testing::ElementsAre(3));
  EXPECT_THAT(sids(tcp(1, 2, "one"), &bits), testing::ElementsAre(1));
  EXPECT_THAT(sids(tcp(1, 2, "two"), &bits), testing::ElementsAre(2));
  EXPECT_THAT(sids(tcp(1, 2, "two"), nullptr), testing::IsEmpty());
}

// Whichever of them stands first, and whatever their priorities.
TEST_F(DetectorTest, RulesThatSetFlowbitsComeBeforeThoseThatAskForThem) {
  const std::string asks = "alert tcp any any -> any any (content:\"abc\"; flowbits:isset,x; priority:1; sid:1;)\n";
  const std::string sets = "alert tcp any any -> any any (content:\"abc\"; flowbits:set,x; priority:3; sid:2;)\n";
  const std::string both =
      "alert tcp any any -> any any (content:\"abc\"; flowbits:isset,x; flowbits:set,y; priority:2; sid:3;)\n";
  const std::string neither = "alert tcp any any -> any any (content:\"abc\"; priority:1; sid:4;)\n";
  for (const std::string& rules : {asks + sets + both + neither, neither + both + sets + asks}) {
    use(rules);
    FlowBits bits{};
    EXPECT_THAT(sids(tcp(1, 2, "abc"), &bits), testing::ElementsAre(2, 3, 1, 4));
  }
  use("drop tcp any any -> any any (content:\"abc\"; flowbits:isset,x; sid:1;)\n" + sets);
  FlowBits bits{};
  EXPECT_THAT(sids(tcp(1, 2, "abc"), &bits), testing::ElementsAre(2)) << "the action comes first";
}

TEST_F(DetectorTest, WhatTheBudgetLeavesIsReported) {
  std::string rules;
  for (int i = 1; i <= 9; ++i)
    rules += "alert tcp any any -> any any (content:\"x\"; sid:" + std::to_string(i) + ";)\n";
  use(rules);
  EXPECT_EQ(sids(tcp(1, 2, "x"), nullptr, 4).size(), 4u);
  EXPECT_EQ(outcome_.left, 5u);
  EXPECT_EQ(sids(tcp(1, 2, "x"), nullptr, 9).size(), 9u);
  EXPECT_EQ(outcome_.left, 0u);
}

// Of two prefilter matches for "x" the budget has capacity for the first in the order of treatment.
TEST_F(DetectorTest, WhatTheBudgetLeavesIsDecisiveWhereItCouldChangeWhatBecomesOfThePacket) {
  const std::string any = " tcp any any -> any any (content:\"x\"; ";
  const std::string alert = "alert" + any, drop = "drop" + any, pass = "pass" + any, reject = "reject" + any;
  struct Case {
    std::string rules;
    bool blocks, decisive;
  };
  const Case cases[] = {
      {alert + "sid:1;)\n" + alert + "sid:2;)", false, false},
      {alert + "sid:1;)\n" + drop + "sid:2;)", true, false},  // the drop rule is looked at
      {drop + "sid:1;)\n" + drop + "sid:2;)", true, true},
      {drop + "sid:1;)\n" + reject + "sid:2;)", true, true},
      {pass + "flowbits:isset,a; sid:1;)\n" + alert + "sid:2;)", false, false},  // nothing would have stopped it
      {pass + "flowbits:isset,a; sid:1;)\n" + pass + "sid:2;)\ndrop tcp any any -> any 9 (sid:3;)", true, true},
      {alert + "flowbits:set,a; sid:1;)\n" + alert + "flowbits:set,b; sid:2;)", false, false},
      {alert + "flowbits:set,a; sid:1;)\n" + alert + "flowbits:set,b; sid:2;)\ndrop tcp any any -> any 9 (sid:3;)",
       true, false},  // no rule that drops asks for a bit
      {alert + "flowbits:set,a; sid:1;)\n" + alert +
           "flowbits:isset,a; flowbits:set,b; sid:2;)\ndrop tcp any any -> any 9 (flowbits:isset,b; sid:3;)",
       true, true},
      {alert + "flowbits:set,a; sid:1;)\n" + alert +
           "flowbits:isset,a; sid:2;)\ndrop tcp any any -> any 9 (flowbits:isset,b; sid:3;)",
       true, false},  // it sets none
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.rules);
    use(one.rules);
    FlowBits bits{};
    sids(tcp(1, 2, "x"), &bits, 1);
    EXPECT_EQ(outcome_.left, 1U);
    EXPECT_EQ(detector_->blocks(), one.blocks);
    EXPECT_EQ(outcome_.decisive, one.decisive);
    sids(tcp(1, 2, "x"), &bits);
    EXPECT_EQ(outcome_.left, 0U);
    EXPECT_FALSE(outcome_.decisive);
  }
}

TEST_F(DetectorTest, RulesOutOfScopeAreNoPrefilterMatches) {
  use("alert tcp any any -> any any (content:\"evil\"; sid:1;)\n"
      "alert tcp any any -> any any (content:\"evil\"; dsize:4; sid:2;)\n"
      "alert tcp any any -> any any (pcre:\"/ev.l/\"; sid:3;)\n"
      "alert tcp any any -> any any (ttl:64; sid:4;)\n");
  const Bytes frame = tcp(1, 2, "evil").build();
  const PacketFacts facts = facts_of({reinterpret_cast<const char*>(frame.data()), frame.size()});
  const std::vector<std::uint32_t> found = {0};
  using Scope = Detector::Scope;
  const struct {
    Scope scope;
    std::size_t prefilter_matches;
  } cases[] = {{Scope::all, 4}, {Scope::packets, 2}, {Scope::streams, 2}};
  for (const auto& one : cases) {
    Detector::Scratch scratch(*detector_);
    EXPECT_TRUE(detector_->collect(Point::packet, facts, {found, false, facts.payload.size(), one.scope}, scratch));
    EXPECT_EQ(scratch.prefilter_matches(), one.prefilter_matches) << static_cast<int>(one.scope);
  }
}

TEST_F(DetectorTest, WhatPortsFlagsAndSizesRuleOutIsNoPrefilterMatch) {
  use("alert tcp any any -> any 7777 (content:\"t \"; sid:1;)\n"
      "alert tcp any any -> any any (flags:SF; content:\"t \"; sid:2;)\n"
      "alert tcp any any -> any 9999 (isdataat:!2; sid:3;)\n");
  EXPECT_THAT(sids(tcp(1, 9999, "not one of them")), testing::IsEmpty());
  EXPECT_EQ(outcome_.confirmed, 0u);
  EXPECT_THAT(sids(tcp(1, 7777, "but one")), testing::ElementsAre(1));
  EXPECT_EQ(outcome_.confirmed, 1u);
  EXPECT_THAT(sids(tcp(1, 9999, "tw")), testing::ElementsAre(3));
}

TEST_F(DetectorTest, ARuleIsInspectedWhereTheLastOfItsBuffersIsWhole) {
  const auto point = [](const std::string& options, const std::string& flow = "") {
    return point_of(read_rule("alert tcp any any -> any any (" + flow + options + " sid:1;)").value());
  };
  EXPECT_EQ(point(""), Point::packet);
  EXPECT_EQ(point("content:\"a\";"), Point::packet);
  EXPECT_EQ(point("content:\"a\"; content:\"b\"; http_uri;"), Point::request_line);
  EXPECT_EQ(point("content:\"a\"; http_uri; content:\"b\"; http_cookie;"), Point::request_headers);
  EXPECT_EQ(point("content:\"a\"; http_uri; content:\"b\"; http_client_body;"), Point::request_body);
  EXPECT_EQ(point("content:\"a\"; http_header;"), Point::request_headers);
  EXPECT_EQ(point("content:\"a\"; http_header;", "flow:to_client; "), Point::response_headers);
  EXPECT_EQ(point("content:\"a\"; http_stat_code;"), Point::response_headers);
  EXPECT_EQ(point("file_data; content:\"a\";"), Point::response_body);
}

TEST_F(DetectorTest, OnlyBuffersThatAPatternMayBeInHaveToBeSearched) {
  use("alert tcp any any -> any any (content:\"a\"; sid:1;)\n"
      "alert http any any -> any any (http.uri; content:\"long\"; http.header_names; content:\"b\"; sid:2;)\n"
      "alert http any any -> any any (http.stat_code; content:\"404\"; pcre:\"/x/Q\"; sid:3;)\n"
      "alert http any any -> any any (http.header; content:\"c\"; sid:4;)\n"
      "alert tcp any any -> any any (content:\"cookie\"; http_cookie; content:\"longer in the payload\"; sid:5;)\n");
  const auto searched = [&](Point point) {
    std::vector<Buffer> buffers;
    for (std::size_t b = 0; b < buffer_count; ++b) {
      if (detector_->searched(point).has(static_cast<Buffer>(b))) buffers.push_back(static_cast<Buffer>(b));
    }
    return buffers;
  };
  EXPECT_TRUE(detector_->is_empty(Point::request_line));
  EXPECT_FALSE(detector_->is_empty(Point::request_headers));
  EXPECT_TRUE(detector_->is_empty(Point::request_body));
  EXPECT_FALSE(detector_->is_empty(Point::response_headers));
  EXPECT_FALSE(detector_->is_empty(Point::response_body));
  EXPECT_THAT(searched(Point::request_line), testing::IsEmpty());
  EXPECT_THAT(searched(Point::request_headers),
              testing::UnorderedElementsAre(Buffer::http_uri, Buffer::http_header, Buffer::http_cookie));
  for (const Buffer buffer : {Buffer::http_uri, Buffer::http_header, Buffer::http_cookie, Buffer::http_stat_code}) {
    EXPECT_EQ(detector_->patterns(buffer).size(), 1U);
    EXPECT_EQ(detector_->numbers(buffer).size(), 1U);
    EXPECT_LT(detector_->numbers(buffer)[0], detector_->number_count());
  }
  EXPECT_EQ(detector_->number_count(), 4U);
  EXPECT_EQ(detector_->patterns(Buffer::payload).size(), 2U) << "one of them of a rule of HTTP that needs it besides";
  EXPECT_TRUE(detector_->calls_for_http(std::array<std::uint32_t, 2>{0, 1}));
  EXPECT_THAT(searched(Point::response_headers),
              testing::UnorderedElementsAre(Buffer::http_header, Buffer::http_cookie));
  EXPECT_THAT(searched(Point::response_body), testing::ElementsAre(Buffer::http_stat_code));
  EXPECT_TRUE(detector_->looked_at().has(Buffer::http_header_names));
  EXPECT_TRUE(detector_->looked_at().has(Buffer::http_response_body));
  EXPECT_FALSE(detector_->looked_at().has(Buffer::http_start));
}

// One after the other, each with names of its own: the rules as such name few.
TEST(Detector, FlowbitsThatNoRulesNameAnyMoreGiveWay) {
  const auto rules = [](std::size_t from, std::size_t count) {
    std::string text;
    for (std::size_t i = from; i < from + count; ++i) {
      text += "alert tcp any any -> any any (flowbits:set,b" + std::to_string(i) + "; sid:" + std::to_string(i + 1) +
              ";)\n";
    }
    return read_rules_text(text, "test.rules").value();
  };
  auto detector = Detector::make(rules(0, 200)).value();
  for (const std::size_t from : {100U, 250U, 400U}) {
    auto next = Detector::make(rules(from, 200), detector.get()).value();
    const FlowBits renamed = next->renamed(*detector);
    const bool is_full = from == 400;
    EXPECT_EQ(has_any(renamed, renamed), is_full) << from;
    if (is_full) {
      std::size_t count = 0;
      for (const std::uint64_t word : renamed) count += static_cast<std::size_t>(std::popcount(word));
      EXPECT_EQ(count, 600U - 512U);
    }
    detector = std::move(next);
  }
  EXPECT_FALSE(Detector::make(rules(1000, 400), detector.get()));
  EXPECT_FALSE(Detector::make(rules(0, 513)));
}

TEST_F(DetectorTest, WhatLooksAtPortsOfItsOwnIsNotReportedOfOtherPackets) {
  std::string rules =
      "alert udp any any -> any 5632 (content:\"ST\"; sid:1;)\nalert udp any any -> any any (content:\"x\"; sid:2;)\n"
      "alert tcp any any -> any 7777 (content:\"ST\"; sid:3;)\nalert tcp any any -> any any (content:\"x\"; sid:4;)\n"
      "alert tcp any 8888 <> any any (content:\"ST\"; sid:5;)\n";
  for (int port = 100; port < 112; ++port) {  // more often named than 7777 and 8888: a group each
    for (int i = 0; i < 2; ++i) {
      rules += "alert tcp any any -> any " + std::to_string(port) +
               " (content:\"x\"; sid:" + std::to_string(2 * port + i) + ";)\n";
    }
  }
  use(rules);
  const TrafficClasses& classes = detector_->classes();
  const auto reported = [&](std::uint32_t sid, std::uint8_t protocol, std::uint16_t source, std::uint16_t destination) {
    const auto rule = std::ranges::find(detector_->rules().rules, sid, &Rule::sid);
    return (classes.classes_of(*rule) >> classes.class_of(protocol, source, destination, true) & 1) != 0;
  };
  constexpr std::uint8_t is_tcp = packet::protocol_tcp, is_udp = packet::protocol_udp;
  for (const std::uint16_t port : {40'000, 53, 7777}) {
    EXPECT_FALSE(reported(1, is_udp, 40'000, port)) << port;
    EXPECT_TRUE(reported(2, is_udp, 40'000, port)) << port;
  }
  EXPECT_TRUE(reported(1, is_udp, 40'000, 5632));
  for (const std::uint16_t source : {40'000, 100, 5632}) {
    for (const std::uint16_t port : {40'000, 101, 443}) {
      EXPECT_FALSE(reported(3, is_tcp, source, port)) << source << ' ' << port;
      EXPECT_FALSE(reported(5, is_tcp, source, port)) << source << ' ' << port;
      EXPECT_TRUE(reported(4, is_tcp, source, port)) << source << ' ' << port;
    }
    EXPECT_TRUE(reported(3, is_tcp, source, 7777)) << source;
    EXPECT_TRUE(reported(5, is_tcp, source, 8888)) << source;
    EXPECT_TRUE(reported(5, is_tcp, 8888, source)) << source;
  }
  constexpr std::uint16_t ports[] = {100, 101, 5632, 7777, 8888, 40'000};
  constexpr std::uint8_t address[4] = {10, 0, 0, 1};
  for (const std::uint8_t protocol : {is_tcp, is_udp}) {
    for (const std::uint16_t source : ports) {
      for (const std::uint16_t destination : ports) {
        const PacketFacts facts = packet_of(4, protocol, {address, source}, {address, destination});
        for (const Rule& rule : detector_->rules().rules) {
          if (!admits(rule, facts, {})) continue;
          EXPECT_TRUE(reported(rule.sid, protocol, source, destination))
              << rule.sid << ' ' << source << ' ' << destination;
        }
      }
    }
  }
}

TEST_F(DetectorTest, AnAdmittedPacketIsOfAClassOfItsRule) {
  std::string rules;
  unsigned sid = 0;
  for (const char* const protocol : {"ip", "ipv4", "ipv6", "tcp", "tcp-pkt", "udp", "icmp", "sctp", "http"}) {
    for (const char* const ends : {"any any -> any any", "any any -> any 80", "any [25,80,443] -> any any",
                                   "any 25 <> any 1024:", "any !80 -> any !25", "any any -> any 53"}) {
      if (std::string_view(protocol) == "icmp" && sid % 6 != 0) break;  // it has no ports
      rules += "alert " + std::string(protocol) + " " + ends + " (content:\"a\"; sid:" + std::to_string(++sid) + ";)\n";
    }
  }
  use(rules);
  std::set<std::uint32_t> admitted;
  const auto expect_of_class = [&](const Bytes& frame, const std::string& what) {
    const PacketFacts facts = facts_of({reinterpret_cast<const char*>(frame.data()), frame.size()});
    ASSERT_NE(facts.family, 0) << what;
    const unsigned klass = detector_->classes().class_of(facts);
    for (const Rule& rule : detector_->rules().rules) {
      FlowFacts flow;
      flow.known = true;
      flow.application = facts.protocol == packet::protocol_tcp ? Protocol::http : Protocol::ip;
      if (!admits(rule, facts, flow)) continue;
      admitted.insert(rule.sid);
      EXPECT_TRUE(detector_->classes().classes_of(rule) >> klass & 1) << rule.sid << " " << what;
    }
  };
  for (const bool v4 : {true, false}) {
    const auto ip = [&] {
      return v4 ? PacketBuilder().ipv4("10.0.0.1", "10.0.0.2") : PacketBuilder().ipv6("2001:db8::1", "2001:db8::2");
    };
    for (const std::uint16_t source : {25, 80, 443, 1024, 60000}) {
      for (const std::uint16_t destination : {25, 53, 80, 443, 2000}) {
        const std::string ports = std::to_string(source) + " " + std::to_string(destination);
        expect_of_class(ip().tcp(source, destination).payload(1).build(), "tcp " + ports);
        expect_of_class(ip().udp(source, destination).payload(1).build(), "udp " + ports);
        expect_of_class(ip().udp(source, destination).payload(40).fragment(0, true).build(), "first " + ports);
        Bytes sctp(12);
        sctp[0] = static_cast<std::uint8_t>(source >> 8);
        sctp[1] = static_cast<std::uint8_t>(source);
        sctp[2] = static_cast<std::uint8_t>(destination >> 8);
        sctp[3] = static_cast<std::uint8_t>(destination);
        expect_of_class(ip().protocol(packet::protocol_sctp).payload(sctp).build(), "sctp " + ports);
      }
    }
    // Without ports.
    for (const std::uint8_t protocol : {packet::protocol_tcp, packet::protocol_udp, packet::protocol_icmp,
                                        packet::protocol_icmpv6, packet::protocol_sctp, std::uint8_t{47}}) {
      const std::string number = std::to_string(protocol);
      expect_of_class(ip().protocol(protocol).payload(40).fragment(80, false).build(), "later fragment " + number);
      expect_of_class(ip().protocol(protocol).payload(3).build(), "cut " + number);
    }
  }
  EXPECT_EQ(admitted.size(), sid);
}

}  // namespace
}  // namespace sluice::match
