// What the control side shows of tunnels, and what a change leaves of the stations.
#include <gtest/gtest.h>

#include "engine/port_table.h"
#include "function/vxlan/vxlan_control.h"

namespace sluice::function {
namespace {

packet::IpAddress address(const char* text) {
  return *packet::IpAddress::parse(text);
}

// The remote is in TEST-NET-1 (RFC 5737): no host has a way to it from an address in there.
TunnelSettings one_tunnel(std::uint32_t vni) {
  Tunnel tunnel;
  tunnel.port = 1;
  tunnel.vni = vni;
  tunnel.local = address("192.0.2.77");
  tunnel.remotes = {address("192.0.2.2")};
  TunnelSettings settings;
  settings.tunnels.push_back(tunnel);
  return settings;
}

class VxlanShown : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(control_.start(1));
    // The first remote has the first number.
    ASSERT_EQ(control_.fdb(1).learn(0x0a0000000002, 0, 1), Fdb::Learned::added);
  }
  std::uint32_t stations() const { return control_.show().at(0).stations; }
  const engine::PortTable ports_{
      {{.name = "wan", .mac = {}}, {.name = "vx", .mac = {}, .is_virtual = true, .device = "vxlan"}}};
  VxlanControl control_{one_tunnel(100), ports_};
};

TEST_F(VxlanShown, EachTunnelWithItsRemotes) {
  const auto all = control_.show();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].port, 1);
  EXPECT_EQ(all[0].vni, 100U);
  EXPECT_EQ(all[0].local.str(), "192.0.2.77");
  ASSERT_EQ(all[0].remotes.size(), 1U);
  EXPECT_EQ(all[0].remotes[0].address.str(), "192.0.2.2");
  EXPECT_FALSE(all[0].remotes[0].hop.resolved);
  EXPECT_EQ(all[0].stations, 1U);
}

TEST_F(VxlanShown, StationsStayInTheirNetwork) {
  TunnelSettings same = one_tunnel(100);
  same.tunnels[0].ttl = 3;
  control_.change(same);
  EXPECT_EQ(stations(), 1U);
  control_.change(one_tunnel(101));
  EXPECT_EQ(stations(), 0U);
  EXPECT_EQ(control_.show().at(0).vni, 101U);
}

}  // namespace
}  // namespace sluice::function
