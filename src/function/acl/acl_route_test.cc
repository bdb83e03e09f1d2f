// The element in front of the router: what the router leaves to the kernel to forward does not pass by the rules.
#include <gtest/gtest.h>

#include "engine/batch_edit.h"
#include "function/acl/acl_trial_test.h"
#include "function/route/route.h"

namespace sluice::function {
namespace {

const char* const rules = R"(
[[acl.rule]]
protocol = "tcp"
destination_port = "22"
action = "deny"
[[acl.rule]]
destination = "224.0.0.0/4"
action = "deny"
)";

using Elements = std::vector<std::unique_ptr<engine::Element>>;

std::unique_ptr<engine::Pipeline> with_router(Elements elements, const engine::PortTable& ports) {
  Router::RouterOptions options;
  options.max_ipv4 = options.max_ipv6 = 10'000;
  options.any_mac = true;
  elements.push_back(std::make_unique<Router>(options, ports));
  return std::make_unique<engine::Pipeline>(std::move(elements));
}

std::unique_ptr<engine::Pipeline> before_router(const engine::PortTable& ports) {
  Elements elements;
  elements.push_back(acl_of(rules));
  return with_router(std::move(elements), ports);
}

// Says that it has to do with payloads, and leaves them.
class Payload : public engine::Element {
 public:
  explicit Payload(engine::Payloads payloads) : payloads_(payloads) {}
  engine::Shape shape() const override { return {.payloads = payloads_}; }
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}

 private:
  const engine::Payloads payloads_;
};

constexpr std::uint32_t outer_headers = 14 + 20 + 8;

// The end of a tunnel of frames in UDP, as simple as can be.
class Unwrap : public engine::Element {
 public:
  engine::Shape shape() const override { return {.changes_headers = true}; }
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter&) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (batch.goes_on(i) && batch.length[i] > outer_headers + 60) engine::shrink_front(batch, i, outer_headers);
    }
  }
};

// There is no twin, so that what is punted is dropped for that.
TEST(AclBeforeRouter, JudgesWhatTheKernelWouldForward) {
  struct Case {
    const char* name;
    Bytes frame;
    packet::Reason reason;
  };
  const auto v4 = [] { return PacketBuilder().ipv4("192.0.2.1", "198.51.100.2"); };
  const auto v6 = [] { return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2"); };
  const auto of_type = [](std::uint16_t ethertype, Bytes frame) {
    packet::header_at<packet::EthernetHeader>(frame.data(), 0).ethertype = packet::be16(ethertype);
    return frame;
  };
  const Case cases[] = {
      {"SSH in a VLAN of 0x9100", of_type(0x9100, v4().vlan(7).tcp(1, 22).build()), acl_denied},
      {"SSH in a VLAN of 0x88a8", of_type(0x88a8, v4().vlan(7).vlan(8).tcp(1, 22).build()), acl_denied},
      {"MPLS is the kernel's alone", of_type(0x8847, v4().vlan(7).tcp(1, 22).build()), packet::no_reason},
      {"SSH", v4().tcp(1, 22).build(), acl_denied},
      {"SSH with options", v4().options({1, 1, 1, 1}).tcp(1, 22).build(), acl_denied},
      {"SSH in a VLAN", v4().vlan(7).tcp(1, 22).build(), acl_denied},
      {"SSH with hop-by-hop options", v6().extension(0, {1}).tcp(1, 22).build(), acl_denied},
      {"flags cut, with options", v4().options({1, 1, 1, 1}).protocol(6).payload(8).build(), acl_malformed},
      {"another port with options", v4().options({1, 1, 1, 1}).tcp(1, 23).build(), packet::no_reason},
      {"multicast is the kernel's alone", PacketBuilder().ipv4("192.0.2.1", "224.0.0.5").protocol(89).build(),
       packet::no_reason},
  };
  for (const Case& c : cases) {
    const Outcome outcome = AclTrial("cpu").run({c.frame}, before_router);
    EXPECT_EQ(outcome.stats.drops[acl_denied], c.reason == acl_denied ? 1U : 0U) << c.name;
    EXPECT_EQ(outcome.stats.drops[acl_malformed], c.reason == acl_malformed ? 1U : 0U) << c.name;
  }
}

// In a chain of two passes the rules are asked for the port that a frame leaves by before the router has looked it up.
TEST(AclBeforeRouter, AsksForTheEgressInAnEarlierPass) {
  const auto two_passes = [](const engine::PortTable& ports) {
    Elements elements;
    elements.push_back(acl_of("[[acl.rule]]\nprotocol = \"tcp\"\naction = \"deny\"\nlog = true\n"));
    elements.push_back(std::make_unique<Payload>(engine::Payloads::read));
    elements.push_back(std::make_unique<Payload>(engine::Payloads::changed));
    return with_router(std::move(elements), ports);
  };
  const Bytes v4 = PacketBuilder().ipv4("192.0.2.1", "198.51.100.2").tcp(1, 22).build();
  const Bytes v6 = PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").tcp(1, 22).build();
  for (const Bytes& frame : {v4, v6}) {
    const Outcome outcome = AclTrial("cpu").run({frame}, two_passes);
    EXPECT_EQ(outcome.stats.drops[acl_denied], 1U);
  }
}

// What came out of a tunnel is judged and routed as any other frame.
TEST(AclBeforeRouter, JudgesWhatAnElementInFrontHasUnwrapped) {
  const auto behind_tunnel = [](const engine::PortTable& ports) {
    Elements elements;
    elements.push_back(std::make_unique<Unwrap>());
    elements.push_back(acl_of(rules));
    return with_router(std::move(elements), ports);
  };
  const auto in_udp = [](const Bytes& inner) {
    return PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").udp(4789, 4789).payload(inner).build();
  };
  const auto inner = [](std::uint16_t port) {
    return PacketBuilder().ipv4("198.51.100.1", "198.51.100.2").tcp(1, port).payload(20).build();
  };
  const Outcome ssh = AclTrial("cpu").run({in_udp(inner(22)), in_udp(inner(80))}, behind_tunnel);
  EXPECT_EQ(ssh.stats.drops[acl_denied], 1U);
}

}  // namespace
}  // namespace sluice::function
