// The element as a table: a frame in, and whether it leaves, changed how, or as what it is dropped. Every case runs
// through the real data path, on the CPU and on the GPU's code.
#include "function/acl/acl.h"

#include <gtest/gtest.h>

#include <cmath>

#include "function/acl/acl_trial_test.h"

namespace sluice::function {
namespace {

constexpr const char* rules = R"(
[[acl.rule]]
protocol = "tcp"
destination_port = "22"
action = "deny"
[[acl.rule]]
source = "10.9.0.0/16"
action = "permit"
[[acl.rule]]
source = "10.0.0.0/8"
destination = "10.1.0.0/16"
source_port = "1000-2000"
protocol = "udp"
action = "deny"
[[acl.rule]]
protocol = "tcp"
tcp_flags = "syn,!ack"
destination = "10.2.0.0/16"
action = "deny"
[[acl.rule]]
protocol = "icmp"
icmp_type = 13
action = "deny"
[[acl.rule]]
source = "2001:db8:bad::/48"
action = "deny"
[[acl.rule]]
protocol = "udp"
destination_port = "5060"
action = "mark"
mark = 46
[[acl.rule]]
destination = "10.3.0.0/16"
action = "deny"
priority = -1
[[acl.rule]]
destination = "10.3.3.0/24"
action = "permit"
)";

// The rule that decides a case, in match order from 1, or none.
constexpr std::size_t by_default = 0, by_none = 1000;

struct Case {
  const char* name;
  std::size_t rule;
  Bytes frame;
  packet::Reason dropped = packet::no_reason;
  Bytes sent{};  // empty: as it came
};

PacketBuilder v4(const char* from, const char* to) {
  return PacketBuilder().ipv4(from, to);
}
PacketBuilder v6(const char* from, const char* to) {
  return PacketBuilder().ipv6(from, to);
}

std::vector<Case> cases() {
  return {
      {"SSH", 1, v4("192.0.2.1", "192.0.2.2").tcp(4000, 22).build(), acl_denied},
      {"SSH over IPv6: the rule is of both families", 1, v6("2001:db8::1", "2001:db8::2").tcp(4000, 22).build(),
       acl_denied},
      {"SSH in a VLAN", 1, v4("192.0.2.1", "192.0.2.2").vlan(7).tcp(4000, 22).build(), acl_denied},
      {"the first match wins, deny", 1, v4("10.9.0.1", "192.0.2.2").tcp(4000, 22).build(), acl_denied},
      {"another port", by_default, v4("192.0.2.1", "192.0.2.2").tcp(4000, 23).build()},
      {"the source port 22", by_default, v4("192.0.2.1", "192.0.2.2").tcp(22, 4000).build()},
      {"UDP to 22", by_default, v4("192.0.2.1", "192.0.2.2").udp(4000, 22).build()},
      {"first port of a range", 3, v4("10.8.0.1", "10.1.0.1").udp(1000, 9).build(), acl_denied},
      {"last port of a range", 3, v4("10.8.0.1", "10.1.255.255").udp(2000, 9).build(), acl_denied},
      {"below the range", by_default, v4("10.8.0.1", "10.1.0.1").udp(999, 9).build()},
      {"above the range", by_default, v4("10.8.0.1", "10.1.0.1").udp(2001, 9).build()},
      {"the first match wins, permit", 2, v4("10.9.0.1", "10.1.0.1").udp(1000, 9).build()},
      {"beside the source", by_default, v4("11.8.0.1", "10.1.0.1").udp(1000, 9).build()},
      {"a new connection", 4, v4("192.0.2.1", "10.2.0.1").tcp(9, 80).tcp_flags(0x02).build(), acl_denied},
      {"an answer", by_default, v4("192.0.2.1", "10.2.0.1").tcp(9, 80).tcp_flags(0x12).build()},
      {"timestamp request", 5, v4("192.0.2.1", "192.0.2.2").icmp(13, 0).build(), acl_denied},
      {"echo request", by_default, v4("192.0.2.1", "192.0.2.2").icmp(8, 0).build()},
      {"IPv6 source", 6, v6("2001:db8:bad::1", "2001:db8::2").udp(1, 2).build(), acl_denied},
      {"beside the IPv6 source", by_default, v6("2001:db8:bae::1", "2001:db8::2").udp(1, 2).build()},
      {"SSH behind extensions", 1, v6("2001:db8::1", "2001:db8::2").extension(60, {1}).tcp(4000, 22).build(),
       acl_denied},
      {"a low priority", 9, v4("192.0.2.1", "10.3.4.1").udp(1, 2).build(), acl_denied},
      {"before the low priority", 8, v4("192.0.2.1", "10.3.3.1").udp(1, 2).build()},
      {"later fragment to 22", by_default,
       v4("192.0.2.1", "192.0.2.2").fragment(1480, false).tcp(1, 22).payload(64).build()},
      {"first fragment to 22", 1, v4("192.0.2.1", "192.0.2.2").fragment(0, true).tcp(1, 22).payload(64).build(),
       acl_denied},
      {"flags cut", by_none, v4("192.0.2.1", "192.0.2.2").protocol(6).payload(8).build(), acl_malformed},
      {"bad length", by_none, v4("192.0.2.1", "192.0.2.2").udp(1, 2).ip_length(2000).build(), acl_malformed},
      {"marked", 7, v4("192.0.2.1", "192.0.2.2").tos(3).udp(1, 5060).build(), packet::no_reason,
       v4("192.0.2.1", "192.0.2.2").tos(46 << 2 | 3).udp(1, 5060).build()},
      {"marked over IPv6", 7, v6("2001:db8::1", "2001:db8::2").vlan(3).udp(1, 5060).build(), packet::no_reason,
       v6("2001:db8::1", "2001:db8::2").vlan(3).tos(46 << 2).udp(1, 5060).build()},
      {"ARP", by_none, PacketBuilder().arp_request("10.0.0.1", "10.3.0.2").build()},
      {"no IP", by_none, PacketBuilder().ethertype(0x88b5).payload(46).build()},
  };
}

class AclTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = GetParam() == "cpu" ? "" : test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // frames and bytes, the default's first

Counts counted(const Outcome& outcome) {
  Counts counts = {{outcome.counted.unmatched.frames, outcome.counted.unmatched.bytes}};
  for (const engine::CountedRule& rule : outcome.counted.rules) counts.emplace_back(rule.frames, rule.bytes);
  return counts;
}

void count(Counts& counts, const Case& c) {
  if (c.rule == by_none) return;
  ++counts[c.rule].first;
  counts[c.rule].second += c.frame.size();
}

TEST_P(AclTest, Table) {
  std::vector<Bytes> frames, expected;
  Counts counts(10);
  std::vector<std::uint64_t> drops(packet::reason_count());
  for (const Case& c : cases()) {
    frames.push_back(c.frame);
    count(counts, c);
    if (c.dropped != packet::no_reason) {
      ++drops[c.dropped];
    } else {
      expected.push_back(c.sent.empty() ? c.frame : c.sent);
    }
  }
  const Outcome outcome = AclTrial(GetParam()).run(frames, acl_of(rules));
  for (const packet::Reason reason : {acl_denied, acl_policed, acl_malformed}) {
    EXPECT_EQ(outcome.stats.drops[reason], drops[reason]) << packet::reason_name(reason);
  }
  EXPECT_EQ(outcome.sent, expected);
  EXPECT_EQ(counted(outcome), counts);
}

// One by one, so that it is seen which case is wrong; the CPU is enough for that.
TEST(Acl, EachCaseAlone) {
  for (const Case& c : cases()) {
    const Outcome outcome = AclTrial("cpu").run({c.frame}, acl_of(rules));
    EXPECT_EQ(outcome.sent.empty(), c.dropped != packet::no_reason) << c.name;
    if (c.dropped != packet::no_reason) {
      EXPECT_EQ(outcome.stats.drops[c.dropped], 1U) << c.name;
    } else if (!outcome.sent.empty()) {
      EXPECT_EQ(outcome.sent[0], c.sent.empty() ? c.frame : c.sent) << c.name;
    }
    Counts counts(10);
    count(counts, c);
    EXPECT_EQ(counted(outcome), counts) << c.name;
    if (HasFailure()) break;
  }
}

TEST_P(AclTest, DefaultDenyIsAboutIpOnly) {
  const std::vector<Bytes> frames = {
      v4("192.0.2.1", "192.0.2.2").udp(1, 2).build(), v6("2001:db8::1", "2001:db8::2").udp(1, 2).build(),
      PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build(), v4("192.0.2.1", "192.0.2.2").udp(1, 53).build()};
  const std::string text =
      "[acl]\ndefault = \"deny\"\n[[acl.rule]]\nprotocol = \"udp\"\ndestination_port = \"53\"\naction = \"permit\"\n";
  const Outcome outcome = AclTrial(GetParam()).run(frames, acl_of(text));
  EXPECT_EQ(outcome.stats.drops[acl_denied], 2U);
  EXPECT_EQ(outcome.sent, (std::vector<Bytes>{frames[2], frames[3]}));
  const Outcome empty = AclTrial(GetParam()).run(frames, acl_of(""));
  EXPECT_EQ(empty.sent, frames) << "no rule, and the default is permit";
}

// Frames of every length, cut anywhere: each is sent as it came, denied, or malformed; none is lost or changed.
TEST_P(AclTest, FramesOfEveryLength) {
  const Bytes whole4 = v4("192.0.2.1", "10.3.0.2").options({1, 1, 1, 1}).tcp(4000, 80).payload(20).build();
  const Bytes whole6 =
      v6("2001:db8::1", "2001:db8::2").vlan(1).extension(0, {1}).fragment(0, true).tcp(4000, 22).payload(16).build();
  std::vector<Bytes> frames, expected;
  for (const Bytes& whole : {whole4, whole6}) {
    for (std::size_t length = 1; length <= whole.size(); ++length) {
      frames.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      if (length < 14) expected.push_back(frames.back());
    }
  }
  const Outcome outcome = AclTrial(GetParam()).run(frames, acl_of(rules));
  EXPECT_EQ(outcome.sent, expected);
  EXPECT_EQ(outcome.stats.drops[acl_denied], 2U) << "the whole ones";
  EXPECT_EQ(outcome.stats.drops[acl_malformed], frames.size() - expected.size() - 2);
}

TEST_P(AclTest, PolicedFramesPassUpToTheBurst) {
  std::vector<Bytes> frames;
  for (int i = 0; i < 300; ++i)
    frames.push_back(v4("192.0.2.1", "192.0.2.2").udp(1, i % 3 == 0 ? 9 : 10).payload(958).build());
  ASSERT_EQ(frames[0].size(), 1000U);
  const Outcome outcome =
      AclTrial(GetParam())
          .run(frames, acl_of("[[acl.rule]]\nprotocol = \"udp\"\ndestination_port = \"9\"\naction = \"police\"\n"
                              "rate = 1\nburst = 20_500\n"));
  EXPECT_EQ(outcome.stats.drops[acl_policed], 80U) << "of a hundred";
  EXPECT_EQ(outcome.sent.size(), 220U);
  EXPECT_EQ(counted(outcome), (Counts{{200, 200'000}, {100, 100'000}})) << "those that are dropped too";
}

TEST_P(AclTest, TotalsAreByAction) {
  std::vector<Bytes> frames;
  for (std::uint16_t i = 0; i < 150; ++i) {
    PacketBuilder builder = i % 2 == 0 ? v4("192.0.2.1", "192.0.2.2") : v6("2001:db8::1", "2001:db8::2");
    frames.push_back(builder.udp(1, static_cast<std::uint16_t>(1 + i % 15)).payload(i % 2 == 0 ? 58U : 38U).build());
    ASSERT_EQ(frames.back().size(), 100U);
  }
  const auto rule = [](const char* ports, const char* action) {
    return std::string("[[acl.rule]]\nprotocol = \"udp\"\ndestination_port = \"") + ports + "\"\naction = " + action;
  };
  const Outcome outcome = AclTrial(GetParam())
                              .run(frames, acl_of(rule("1-5", "\"permit\"\n") + rule("6-9", "\"deny\"\n") +
                                                  rule("10-12", "\"mark\"\nmark = 7\n") +
                                                  rule("13-14", "\"police\"\nrate = 1\nburst = 10_000\n")));
  const std::map<std::string_view, std::uint64_t> expected = {
      {"acl_permit_frames", 50},  {"acl_permit_bytes", 5000},  {"acl_deny_frames", 40},   {"acl_deny_bytes", 4000},
      {"acl_mark_frames", 30},    {"acl_mark_bytes", 3000},    {"acl_police_frames", 20}, {"acl_police_bytes", 2000},
      {"acl_default_frames", 10}, {"acl_default_bytes", 1000}, {"acl_reject_frames", 0},  {"acl_reject_bytes", 0},
      {"acl_log_lines", 0},       {"acl_log_suppressed", 0},   {"acl_log_lost", 0},       {"acl_log_lost_lines", 0}};
  EXPECT_EQ(outcome.metrics, expected);
}

// While frames come without end: from the reload on the other frames are dropped; a list that cannot be changes
// nothing.
TEST_P(AclTest, ReloadWhileFramesCome) {
  const auto list = [](const char* port) {
    return acl_of(std::string("[[acl.rule]]\nprotocol = \"udp\"\ndestination_port = \"") + port +
                  "\"\naction = \"deny\"\n");
  };
  AclTrial trial(GetParam());
  std::vector<Bytes> frames;  // beside so many, the leading ones are few
  for (std::uint16_t i = 0; i < 2000; ++i) {
    frames.push_back(v4("192.0.2.1", "192.0.2.2").udp(1, i % 2 == 0 ? 1 : 2).build());
  }
  const auto engine = trial.start(frames, list("1"), true);
  ASSERT_TRUE(engine);
  const auto share = [&] {
    const auto before = engine->stats();
    engine::EngineStats after = before;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (after.total.rx_frames < before.total.rx_frames + 20'000 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      after = engine->stats();
    }
    const auto frames = static_cast<double>(after.total.rx_frames - before.total.rx_frames);
    EXPECT_GE(frames, 20'000);
    return static_cast<double>(after.drops[acl_denied] - before.drops[acl_denied]) / frames;
  };
  const auto settled = [&](double wanted) {
    double last = -1;
    for (int i = 0; i < 20 && std::abs(last - wanted) > 0.05; ++i) last = share();
    return last;
  };
  EXPECT_NEAR(settled(0.5), 0.5, 0.05);
  auto changed = engine->pipeline().reload(*before_bridge(list("3")));
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_NE(changed->find("1 ACL rule is in force"), std::string::npos) << *changed;
  EXPECT_NEAR(settled(0), 0, 0.01);
  changed = engine->pipeline().reload(*before_bridge(acl_of("[acl]\ndefault = \"deny\"\n")));
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_NEAR(settled(1), 1, 0.05);

  lookup::acl::AclRule impossible;
  impossible.flags = {1, 0};
  impossible.action.kind = lookup::acl::ActionKind::permit;
  changed = engine->pipeline().reload(
      *before_bridge(std::make_unique<Acl>(Acl::AclOptions{.rules = {impossible}, .deny_others = false})));
  EXPECT_FALSE(changed);
  EXPECT_NEAR(settled(1), 1, 0.05);
  engine->stop();
  EXPECT_EQ(engine->stats().imbalance(), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, AclTest, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

}  // namespace
}  // namespace sluice::function
