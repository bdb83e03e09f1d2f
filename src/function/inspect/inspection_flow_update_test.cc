// A frame of which only the flow is brought up to date is judged as any other with the same prefilter matches: none.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <string>

#include "function/inspect/inspection_trial_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;

// Rules without a pattern, or whose pattern has one byte: a device's keys do not lead to them.
constexpr const char* rules_text =
    "alert tcp any any -> any 80 (content:\"x\"; dsize:1; sid:1;)\n"
    "alert tcp any any -> any [21,25] (flags:A; dsize:>30; sid:2;)\n"
    "alert tcp any 6000:6010 -> any any (flags:SF; sid:3;)\n"
    "alert tcp any any <> any 139 (dsize:0; sid:4;)\n"
    "alert tcp any any -> any any (flags:F; sid:5;)\n"
    "alert udp any any -> any 53 (dsize:<5; sid:6;)\n"
    "alert udp any 67 -> any !68 (content:\"|00|\"; depth:1; sid:7;)\n"
    "alert udp any any -> any any (content:\"|01|\"; depth:1; dsize:2; sid:8;)\n"
    "alert ip any any -> any any (ip_proto:2; sid:9;)\n"
    "alert icmp any any -> any any (itype:8; sid:10;)\n"
    "alert tcp any any -> any 81 (content:\"long enough\"; sid:11;)\n";

class FlowUpdateOnly : public testing::Test, public AlertSink {
 protected:
  void SetUp() override {
    rules_ = test::rules_of(rules_text);
    ASSERT_NE(rules_, nullptr);
  }
  void alert(const Alert& alert) override { sids_.push_back(rules_->detector().rules().rules[alert.rule].sid); }
  std::unique_ptr<Inspection> make() {
    InspectionSettings settings = test::small_settings();
    settings.conversations.flows.capacity = 1 << 14;
    settings.conversations.flows.seed = 1;
    return std::make_unique<Inspection>(std::make_unique<InspectionSearch>(rules_), settings, *this);
  }

  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
};

Bytes random_frame(std::mt19937& random) {
  static constexpr std::uint16_t ports[] = {80, 21, 25, 6000, 6010, 6011, 139, 53, 67, 68, 1024, 0, 65535};
  static constexpr std::uint8_t flags[] = {
      packet::tcp_ack, packet::tcp_ack, packet::tcp_fin, packet::tcp_syn | packet::tcp_fin, packet::tcp_rst, 0xff};
  PacketBuilder builder;
  random() % 2 == 0 ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
  const auto port = [&] { return ports[random() % std::size(ports)]; };
  switch (random() % 8) {
    case 0:
      builder.icmp(random() % 2 == 0 ? 8 : 0, 0);
      break;
    case 1:
    case 2:
    case 3:
      builder.udp(port(), port());
      break;
    default:
      builder.tcp(port(), port()).tcp_flags(flags[random() % std::size(flags)]);
  }
  static constexpr std::size_t sizes[] = {0, 1, 2, 5, 31, 40};
  Bytes payload(sizes[random() % std::size(sizes)], random() % 2 == 0 ? 'x' : static_cast<std::uint8_t>(random() % 3));
  return builder.payload(payload).build();
}

TEST_F(FlowUpdateOnly, AreJudgedAsWithoutThatKnowledge) {
  const auto known = make(), unknown = make();
  std::mt19937 random(3);
  unsigned flow_updates = 0, alerts = 0;
  for (unsigned round = 1; round <= 50'000; ++round) {
    const Bytes bytes = random_frame(random);
    const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    const FrameBrief brief = known->brief_of(frame);
    const match::PacketFacts facts = match::facts_of(frame);
    ASSERT_EQ(brief.payload, facts.payload);
    ASSERT_EQ(brief.klass, rules_->detector().classes().class_of(facts));
    flow_updates += brief.updates_flow_only ? 1 : 0;
    KeyHits hits{rules_->generation(), nullptr, 0};
    sids_.clear();
    unknown->frame(frame, round * 1000, hits);
    const std::vector<std::uint32_t> expected = std::exchange(sids_, {});
    hits.updates_flow_only = brief.updates_flow_only;
    known->frame(frame, round * 1000, hits);
    ASSERT_EQ(sids_, expected) << "in round " << round;
    alerts += static_cast<unsigned>(expected.size());
  }
  EXPECT_GT(flow_updates, 10'000U);
  EXPECT_GT(alerts, 1'000U);
  EXPECT_EQ(known->counters().frames, unknown->counters().frames);
  EXPECT_EQ(known->conversations().table().counters().made, unknown->conversations().table().counters().made);
  EXPECT_EQ(known->conversations().table().counters().bad_sequence,
            unknown->conversations().table().counters().bad_sequence);
  EXPECT_EQ(known->counters().searched, unknown->counters().searched);
}

// Of rules whose keys are there, or that a header leads to, flows, ports and sizes leave some or none.
constexpr const char* keyed_rules_text =
    "alert tcp any any -> any 80 (flow:established,to_server; content:\"alpha\"; sid:1;)\n"
    "alert tcp any any -> any 21 (flow:not_established; content:\"alpha\"; sid:2;)\n"
    "alert tcp any [21,80] -> any any (flow:to_client; content:\"beta\"; sid:3;)\n"
    "alert tcp-pkt any any -> any 80 (content:\"gamma\"; dsize:<12; sid:4;)\n"
    "alert tcp any any -> any 80 (flow:established; content:\"%\"; sid:5;)\n"
    "alert tcp any any -> any 21 (flow:stateless; content:\"%\"; content:\"beta\"; sid:6;)\n"
    "alert udp any any -> any 53 (content:\"alpha\"; flowbits:set,seen; sid:7;)\n"
    "alert udp any any -> any 53 (flow:established,to_server; content:\"gamma\"; flowbits:isset,seen; sid:8;)\n"
    "pass tcp any any -> any 80 (content:\"omega\"; sid:9;)\n"
    "drop udp any any -> any 53 (flow:to_server; content:\"omega\"; dsize:5; sid:10;)\n"
    "alert tcp any any -> any 25 (content:\"alphabet\"; sid:11;)\n";

// Segments in order of conversations, most of which shake hands, and datagrams both ways.
class Talk {
 public:
  explicit Talk(unsigned seed) : random_(seed) {}
  Bytes next() {
    const std::size_t n = random_() % flows_.size();
    One& one = flows_[n];
    const auto client = static_cast<std::uint16_t>(4000 + n);
    const bool up = random_() % 2 == 0;
    PacketBuilder builder;
    up ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv4("10.0.0.2", "10.0.0.1");
    if (n % 4 == 3) {
      up ? builder.udp(client, 53) : builder.udp(53, client);
      return builder.payload(words()).build();
    }
    const std::uint16_t server = n % 4 == 0 ? 21 : n % 4 == 1 ? 80 : 25;
    if (one.shakes < 3 && n % 16 < 12) return handshake(one, client, server);
    up ? builder.tcp(client, server) : builder.tcp(server, client);
    const Bytes payload = words();
    builder.tcp_flags(packet::tcp_ack).tcp_sequence(one.next[up ? 0 : 1], one.next[up ? 1 : 0]);
    one.next[up ? 0 : 1] += static_cast<std::uint32_t>(payload.size());
    return builder.payload(payload).build();
  }

 private:
  struct One {
    unsigned shakes = 0;
    std::array<std::uint32_t, 2> next{101, 501};
  };
  static Bytes handshake(One& one, std::uint16_t client, std::uint16_t server) {
    const unsigned step = one.shakes++;
    PacketBuilder builder;
    step == 1 ? builder.ipv4("10.0.0.2", "10.0.0.1").tcp(server, client)
              : builder.ipv4("10.0.0.1", "10.0.0.2").tcp(client, server);
    if (step == 0) builder.tcp_flags(packet::tcp_syn).tcp_sequence(100, 0);
    if (step == 1) builder.tcp_flags(packet::tcp_syn | packet::tcp_ack).tcp_sequence(500, 101);
    if (step == 2) builder.tcp_flags(packet::tcp_ack).tcp_sequence(101, 501);
    return builder.build();
  }
  Bytes words() {
    static constexpr std::string_view all[] = {"alpha", "beta", "gamma", "alphabet", "%", "some", "ordinary ", "text "};
    std::string text;
    for (auto count = random_() % 3; count > 0; --count) text += all[random_() % std::size(all)];
    if (random_() % 200 == 0) text = "omega";
    return {text.begin(), text.end()};
  }

  std::mt19937 random_;
  std::array<One, 64> flows_;
};

TEST_F(FlowUpdateOnly, WithKeysAreJudgedAsACoreThatSearchesJudgesThem) {
  rules_ = test::rules_of(keyed_rules_text);
  ASSERT_NE(rules_, nullptr);
  std::set<std::uint32_t> all;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const auto by_keys = make(), by_core = make();
    Talk talk(seed);
    for (unsigned round = 1; round <= 2'000; ++round) {
      const Bytes bytes = talk.next();
      const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
      sids_.clear();
      const bool expected_drop = by_core->frame(frame, round * 1000).drop;
      std::multiset<std::uint32_t> expected(sids_.begin(), sids_.end());
      sids_.clear();
      ASSERT_EQ(test::inspect(*by_keys, frame, round * 1000, true).drop, expected_drop) << seed << " " << round;
      ASSERT_EQ(std::multiset<std::uint32_t>(sids_.begin(), sids_.end()), expected) << seed << " " << round;
      all.insert(expected.begin(), expected.end());
    }
    EXPECT_GT(by_keys->conversations().stream_counters().delivered, 1000U);
  }
  EXPECT_EQ(all, (std::set<std::uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 10, 11}));
}

// Where ports, sizes or the flow rule all of them out there is none.
TEST_F(FlowUpdateOnly, WithKeysHaveThePrefilterMatchesThatTheirFlowLeaves) {
  rules_ = test::rules_of(keyed_rules_text);
  ASSERT_NE(rules_, nullptr);
  struct Case {
    std::uint16_t port;
    const char* payload;
    bool any;
  };
  for (const Case& one :
       {Case{80, "alpha", false}, Case{21, "alpha", true}, Case{80, "gamma", true}, Case{80, "gamma and more", false},
        Case{80, "50 %", false}, Case{21, "50 % beta", true}, Case{25, "alpha", false}, Case{25, "alphabet", true}}) {
    const auto inspection = make();
    const std::string_view text = one.payload;
    const Bytes bytes = PacketBuilder()
                            .ipv4("10.0.0.1", "10.0.0.2")
                            .tcp(4000, one.port)
                            .tcp_flags(packet::tcp_ack)
                            .payload(Bytes(text.begin(), text.end()))
                            .build();
    test::inspect(*inspection, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 1000, true);
    EXPECT_EQ(inspection->counters().confirmed != 0, one.any) << one.port << " " << one.payload;
  }
}

// `updates_flow_only` says what rules say: others that come meanwhile look at the frame.
TEST_F(FlowUpdateOnly, AreNoneByOtherRules) {
  const auto inspection = make();
  const Bytes bytes =
      PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(7, 7).payload(Bytes{'l', 'a', 't', 'e', 'r'}).build();
  const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const FrameBrief brief = inspection->brief_of(frame);
  ASSERT_TRUE(brief.updates_flow_only);
  const KeyHits hits{rules_->generation(), nullptr, 0, true};
  rules_ = test::rules_of("alert udp any any -> any 7 (content:\"later\"; sid:99;)\n");
  ASSERT_NE(rules_, nullptr);
  inspection->exchange(std::make_unique<InspectionSearch>(rules_));
  inspection->frame(frame, 1000, hits, brief.hash);
  EXPECT_EQ(sids_, std::vector<std::uint32_t>{99});
}

}  // namespace
}  // namespace sluice::function
