// Whose frames the router takes, and from which sources, through the real data path.
#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include "engine/frame_marks.h"
#include "function/route/route_trial_test.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

const packet::MacAddress router{{2, 0, 0, 0, 0, 0x0b}}, virtual_router{{0, 0, 0x5e, 0, 1, 1}};

Bytes to(const std::string& mac, const char* source = "10.1.0.9") {
  return PacketBuilder().eth(host_mac, mac).ipv4(source, "203.0.113.7").ttl(64).udp(1, 2).payload(5).build();
}
Bytes to6(const std::string& mac) {
  return PacketBuilder().eth(host_mac, mac).ipv6("2001:db8:1::9", "2001:db8:77::1").ttl(64).udp(1, 2).build();
}

// The frames through a router whose port 0, where they come in, is so. Its twin has the address `router`. What is
// punted is dropped as no_twin, as the ports here have none.
Result with(PortIngress ingress, const std::vector<Bytes>& frames, const std::function<void(RouteTable&)>& more = {}) {
  ingress.mac = router;
  return route(
      frames, "cpu",
      [&](RouteTable& table) {
        fill(table);
        ASSERT_TRUE(table.add_route({*packet::IpPrefix::parse("10.1.0.0/24"), RouteKind::unicast, {{0, {}, 1}}}));
        if (more) more(table);
        table.set_ingress(0, ingress);
      },
      false);
}

TEST(RouterIngress, TakesAndSendsWithTheTwinsAddress) {
  const Result result = with({}, {to(router.str()), to6(router.str()), to("02:00:00:00:00:77")});
  EXPECT_EQ(result.sent.size(), 2U);
  EXPECT_EQ(drops_named(result.stats, "other_host"), 1U);
  const Result sent = route({v4("203.0.113.7").udp(1, 2).payload(5).build()}, "cpu", [](RouteTable& table) {
    fill(table);
    PortIngress out;
    out.mac = virtual_router;
    table.set_ingress(1, out);
  });
  ASSERT_EQ(sent.sent.size(), 1U);
  EXPECT_TRUE(std::equal(sent.sent[0].begin() + 6, sent.sent[0].begin() + 12, virtual_router.bytes.begin()));
}

TEST(RouterIngress, RoutesForAnotherAddressWhatItsInterfaceWould) {
  PortIngress ingress;
  Ingress on_top;
  on_top.is_twin = on_top.routes_ipv6 = false;
  ingress.more = {{virtual_router, on_top}};
  const std::vector<Bytes> frames = {to(virtual_router.str()), to6(virtual_router.str()), to(router.str())};
  const Result result = with(ingress, frames);
  EXPECT_EQ(result.sent.size(), 2U);
  EXPECT_EQ(drops_named(result.stats, "no_twin"), 1U) << "IPv6 is the kernel's";
  ingress.more.push_back({virtual_router, on_top});
  const Result twice = with(ingress, frames);
  EXPECT_EQ(drops_named(twice.stats, "no_twin"), 2U) << "of two interfaces with that address the kernel decides";
}

TEST(RouterIngress, GivesEverythingToTheKernelWhereThatSaysSo) {
  PortIngress ingress;
  ingress.other_hosts = true;
  const std::vector<Bytes> frames = {to("02:00:00:00:00:77"), to(router.str())};
  const Result promiscuous = with(ingress, frames);
  EXPECT_EQ(promiscuous.sent.size(), 1U);
  EXPECT_EQ(drops_named(promiscuous.stats, "no_twin"), 1U);
  ingress.everything = true;
  // A bridge takes what is no good packet, too.
  Bytes odd = to("02:00:00:00:00:77");
  odd[14 + 10] ^= 1;
  const Result all = with(ingress, {frames[0], frames[1], odd, Bytes(14, 1)});
  EXPECT_TRUE(all.sent.empty());
  EXPECT_EQ(drops_named(all.stats, "no_twin"), 4U);
  EXPECT_EQ(all.stats.imbalance(), 0);
}

struct SourceCase {
  const char* what;
  const char* source;
  const char *strict, *loose, *loose_unnumbered;  // dropped as; "": forwarded
};

TEST(RouterIngress, ChecksSourcesAsTheKernelDoes) {
  const std::vector<SourceCase> cases = {
      {"a host of the link", "10.1.0.9", "", "", ""},
      {"through the link's router", "192.168.1.1", "", "", ""},
      {"a host of the other link", "10.2.0.7", "rp_filter", "", "rp_filter"},
      {"the default route, by the other link", "8.8.8.8", "rp_filter", "", "rp_filter"},
      {"over both links", "198.19.0.1", "", "", ""},
      {"a blackhole", "192.0.2.1", "rp_filter", "rp_filter", "rp_filter"},
      {"unreachable", "192.0.3.1", "rp_filter", "rp_filter", "rp_filter"},
      {"the host itself", "10.1.0.1", "kernel", "kernel", "kernel"},
      {"what the kernel reaches by another interface", "172.16.0.1", "kernel", "", "kernel"},
  };
  const auto more = [](RouteTable& table) {
    Route back;
    back.prefix = *packet::IpPrefix::parse("192.168.0.0/16");
    back.next_hops = {{0, *packet::IpAddress::parse("10.1.0.254"), 1}};
    ASSERT_TRUE(table.add_route(back));
    back.prefix = *packet::IpPrefix::parse("198.19.0.0/16");
    back.next_hops.push_back({1, *packet::IpAddress::parse("10.2.0.2"), 1});
    ASSERT_TRUE(table.add_route(back));
    Route elsewhere;
    elsewhere.prefix = *packet::IpPrefix::parse("172.16.0.0/12");
    elsewhere.kind = RouteKind::local;
    elsewhere.elsewhere = true;
    ASSERT_TRUE(table.add_route(elsewhere));
  };
  for (const SourceCase& one : cases) {
    const auto expect = [&](ReversePath mode, bool has_ipv4, std::string dropped_as) {
      PortIngress ingress;
      ingress.twin.reverse_path = mode;
      ingress.twin.has_ipv4 = has_ipv4;
      const Result result = with(ingress, {to(router.str(), one.source), to6(router.str())}, more);
      SCOPED_TRACE(std::string(one.what) + ", " + std::to_string(static_cast<int>(mode)) +
                   (has_ipv4 ? "" : " unnumbered"));
      EXPECT_EQ(result.sent.size(), dropped_as.empty() ? 2U : 1U) << "IPv6 always passes";
      // Without a twin what the kernel is to judge has the same name.
      EXPECT_EQ(drops_named(result.stats, "rp_filter"), dropped_as.empty() ? 0U : 1U);
    };
    expect(ReversePath::off, true, "");
    expect(ReversePath::strict, true, one.strict);
    expect(ReversePath::loose, true, one.loose);
    expect(ReversePath::loose, false, one.loose_unnumbered);
  }
}

// Marks packets with a TTL of 33.
class Verifier final : public engine::Element, public engine::Ingress {
 public:
  void* find_trait(std::string_view name) override { return engine::offer<engine::Ingress>(name, this); }
  Expected<void> prepare(const engine::Plan& /*plan*/) override { return engine::register_source_verified(); }
  void admit(engine::Batch& batch, engine::Span span) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (batch.data(i)[14 + 8] == 33) batch.mbuf[i]->ol_flags |= engine::frame_marks().source_verified;
    }
  }
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}
};

TEST(RouterIngress, ASourceThatIsVerifiedIsNotJudgedByItsPort) {
  const Bytes forged = to(router.str(), "10.2.0.7");
  Bytes verified = forged;
  auto& ip = packet::header_at<packet::Ipv4Header>(verified.data(), 14);
  ip.ttl = 33;
  ip.checksum = packet::ipv4_header_checksum(ip);
  PortIngress ingress;
  ingress.mac = router;
  ingress.twin.reverse_path = ReversePath::strict;
  const Result result = route(
      {forged, verified, forged}, "cpu",
      [&](RouteTable& table) {
        fill(table);
        table.set_ingress(0, ingress);
      },
      false, [] { return std::make_unique<Verifier>(); });
  ASSERT_EQ(result.sent.size(), 1U);
  EXPECT_EQ(result.sent[0][14 + 8], 32);
  EXPECT_EQ(drops_named(result.stats, "rp_filter"), 2U);
  EXPECT_EQ(result.stats.imbalance(), 0);
}

TEST(RouterIngress, AnInterfaceOnTopIsStrictForItself) {
  PortIngress ingress;
  Ingress on_top;
  on_top.is_twin = false;
  on_top.reverse_path = ReversePath::strict;
  ingress.more = {{virtual_router, on_top}};
  const Result result = with(ingress, {to(virtual_router.str()), to(router.str())});
  EXPECT_EQ(result.sent.size(), 1U) << "the way back is by the twin";
  EXPECT_EQ(drops_named(result.stats, "rp_filter"), 1U);
}

}  // namespace
}  // namespace sluice::function
