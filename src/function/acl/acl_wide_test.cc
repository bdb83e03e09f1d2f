// What rules ask for besides the 5-tuple: ports that frames come in and leave by, named sets, and what becomes of
// frames that are rejected; on the CPU and on the GPU's code.
#include <gtest/gtest.h>

#include <algorithm>

#include "function/acl/acl_trial_test.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

class AclWide : public testing::TestWithParam<const char*> {
 protected:
  AclTrial trial_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, AclWide, testing::Values("cpu", "cuda:0"));

const engine::PortTable ports({{.name = "in", .mac = {}, .peer = 1}, {.name = "out", .mac = {}, .peer = 0}});

std::unique_ptr<engine::Element> wide_acl(const std::string& text) {
  return acl_of(text, ports);
}

std::vector<std::uint64_t> frames_of(const Outcome& outcome) {
  std::vector<std::uint64_t> all;
  for (const engine::CountedRule& rule : outcome.counted.rules) all.push_back(rule.frames);
  return all;
}

Bytes to_port(std::uint16_t port, const char* from = "192.0.2.1") {
  return PacketBuilder().ipv4(from, "192.0.2.200").udp(7, port).payload(20).build();
}

// Frames to UDP port 2 have come in by "out", as those have that a tunnel's end takes out of frames of "in".
class ByAnotherPort final : public engine::Element, public engine::Ingress {
 public:
  void admit(engine::Batch& batch, engine::Span span) override {
    constexpr std::size_t destination_port = 14 + 20 + 2;
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (batch.data(i)[destination_port + 1] == 2) batch.row[i].port = 1;
    }
  }
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}
  void* find_trait(std::string_view name) override { return engine::offer<engine::Ingress>(name, this); }
};

TEST_P(AclWide, PortsAreOfFramesNotOfLanes) {
  const Outcome outcome = trial_.run({to_port(1), to_port(2), to_port(3)}, [](const engine::PortTable& table) {
    auto acl = acl_of(R"(
[[acl.rule]]
destination_port = [1, 2, 3]
ingress = "out"
action = "deny"
)",
                      table);
    std::vector<std::unique_ptr<engine::Element>> elements;
    elements.push_back(std::make_unique<ByAnotherPort>());
    elements.push_back(std::move(acl));
    elements.push_back(std::make_unique<Bridge>(std::vector<std::uint16_t>{1, 0}));
    return std::make_unique<engine::Pipeline>(std::move(elements));
  });
  EXPECT_EQ(frames_of(outcome), std::vector<std::uint64_t>{1});
}

// Frames come in by "in" and leave by "out".
TEST_P(AclWide, PortsThatFramesComeInAndLeaveBy) {
  const Outcome outcome =
      trial_.run({to_port(1), to_port(2), to_port(3), to_port(4), to_port(5), to_port(6)}, wide_acl(R"(
[[acl.rule]]
ingress = "out"
action = "deny"
[[acl.rule]]
egress = "in"
action = "deny"
[[acl.rule]]
destination_port = 1
ingress = "in"
action = "deny"
[[acl.rule]]
destination_port = 2
egress = "out"
action = "deny"
[[acl.rule]]
destination_port = 3
egress = "!out"
action = "deny"
[[acl.rule]]
destination_port = [3, 4]
ingress = "!out"
egress = ["in", "out"]
action = "deny"
[[acl.rule]]
name = "five"
destination_port = 5
action = "deny"
)"));
  EXPECT_EQ(frames_of(outcome), (std::vector<std::uint64_t>{0, 0, 1, 1, 0, 2, 1}));
  EXPECT_EQ(outcome.sent, std::vector<Bytes>{to_port(6)});
  EXPECT_EQ(outcome.counted.rules[6].name, "five");
  EXPECT_EQ(outcome.counted.count, 7U);
}

TEST_P(AclWide, Sets) {
  const auto v6 = [](const char* from) { return PacketBuilder().ipv6(from, "2001:db8::99").tcp(9, 443).build(); };
  const Outcome outcome =
      trial_.run({to_port(1, "192.0.2.1"), to_port(1, "192.0.2.7"), to_port(80, "192.0.2.200"),
                  to_port(81, "192.0.2.9"), to_port(9000, "192.0.2.8"), v6("2001:db8:1::5"), v6("2001:db8:2::5")},
                 wide_acl(R"(
[[acl.set]]
name = "bad"
entries = ["192.0.2.1", "192.0.2.6-192.0.2.7", "2001:db8:1::/48"]
[[acl.set]]
name = "web"
type = "ports"
entries = [80, "9000-9010"]
[[acl.rule]]
source = "@bad"
action = "deny"
[[acl.rule]]
destination_port = "@web"
source = "!@bad"
action = "deny"
[[acl.rule]]
destination = "@bad"
action = "deny"
)"));
  EXPECT_EQ(frames_of(outcome), (std::vector<std::uint64_t>{3, 2, 0}));
  EXPECT_EQ(outcome.sent, (std::vector<Bytes>{to_port(81, "192.0.2.9"), v6("2001:db8:2::5")}));
}

TEST_P(AclWide, RejectedFramesAreAnsweredOnTheWayTheyCame) {
  const Bytes tcp = PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").tcp(4000, 22).tcp_flags(0x02).build();
  const Bytes tcp6 = PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").tcp(4000, 22).tcp_flags(0x02).build();
  const Bytes udp_in_vlan = PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").vlan(7).udp(4000, 53).payload(10).build();
  const Bytes multicast = PacketBuilder().ipv4("192.0.2.1", "224.0.0.9").udp(4000, 53).build();
  const Outcome outcome = trial_.run({tcp, tcp6, udp_in_vlan, multicast}, wide_acl("[[acl.rule]]\naction = \"reject\"\n"
                                                                                   "destination_port = [22, 53]\n"));
  EXPECT_TRUE(outcome.sent.empty());
  EXPECT_EQ(outcome.stats.drops[acl_rejected] + outcome.stats.answers[acl_rejected], 4U);
  EXPECT_EQ(outcome.stats.answers[acl_rejected], 3U);
  ASSERT_EQ(outcome.back.size(), 3U);
  EXPECT_EQ(outcome.back[0][14 + 20 + 13], 0x14) << "RST and ACK";
  EXPECT_EQ(outcome.back[1][14 + 40 + 13], 0x14);
  const Bytes& error = outcome.back[2];
  EXPECT_EQ(error[12], 0x81) << "the tag stays";
  EXPECT_EQ(error[15], 7);
  EXPECT_EQ(error[16], 0x08);
  EXPECT_EQ(error[18 + 9], packet::protocol_icmp);
  EXPECT_EQ(error[18 + 20], 3);
  EXPECT_EQ(error[18 + 21], 13) << "communication administratively prohibited";
  EXPECT_TRUE(std::equal(error.begin(), error.begin() + 6, udp_in_vlan.begin() + 6)) << "to who sent it";
}

TEST_P(AclWide, OneBucketForAllThatARuleBecomes) {
  std::vector<Bytes> frames;
  for (int i = 0; i < 40; ++i) frames.push_back(to_port(static_cast<std::uint16_t>(1 + i % 2)));
  const Outcome outcome = trial_.run(frames, wide_acl(R"(
[[acl.rule]]
destination_port = [1, 2]
action = "police"
rate = 8
burst = 1600
log = true
)"));
  EXPECT_EQ(outcome.sent.size(), 1600 / frames[0].size()) << "not twice as many";
  EXPECT_EQ(frames_of(outcome), std::vector<std::uint64_t>{40});
  EXPECT_EQ(outcome.metrics.at("acl_log_lines") + outcome.metrics.at("acl_log_suppressed"), 40U);
  EXPECT_GE(outcome.metrics.at("acl_log_suppressed"), 25U);
}

}  // namespace
}  // namespace sluice::function
