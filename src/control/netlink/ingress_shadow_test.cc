#include "control/netlink/ingress_shadow.h"

#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_link.h>

#include "control/netlink/recording_plane.h"

namespace sluice::control::netlink {
namespace {

using function::Ingress;
using function::ReversePath;

packet::MacAddress mac(std::uint8_t last) {
  return {{2, 0, 0, 0, 0, last}};
}

// Interface 5 is the twin of port 0, with the address :05.
class IngressShadowTest : public testing::Test {
 protected:
  void SetUp() override {
    hops_.set_port(5, 0);
    shadow_.apply(twin());
  }
  static LinkMessage twin() {
    LinkMessage link;
    link.ifindex = 5;
    link.name = "sl-a";
    link.flags = IFF_UP;
    link.mac = mac(5);
    return link;
  }
  static LinkMessage upper(int ifindex, const std::string& kind, std::uint32_t mode = 0) {
    LinkMessage link;
    link.ifindex = ifindex;
    link.name = "x" + std::to_string(ifindex);
    link.kind = kind;
    link.macvlan_mode = mode;
    link.flags = IFF_UP;
    link.lower = 5;
    link.mac = mac(static_cast<std::uint8_t>(ifindex));
    return link;
  }
  void set(int family, int ifindex, std::optional<std::uint32_t> forwarding,
           std::optional<std::uint32_t> rp_filter = {}) {
    InterfaceSettingsMessage message;
    message.family = static_cast<std::uint8_t>(family);
    message.ifindex = ifindex;
    message.forwarding = forwarding;
    message.rp_filter = rp_filter;
    shadow_.apply(message);
  }
  void address(int ifindex, const std::string& text) {
    AddressMessage message;
    message.ifindex = ifindex;
    message.address = packet::IpAddress::parse(text).value();
    addresses_.apply(message);
    shadow_.moved();
  }
  void link_address(std::uint8_t last, bool removed = false) {
    shadow_.apply(LinkAddressMessage{removed, 5, mac(last)});
  }
  const function::PortIngress& announced() {
    shadow_.settle();
    return plane_.ingress.at(0);
  }
  const Ingress* more(std::uint8_t last) {
    for (const auto& [address, ingress] : announced().more) {
      if (address == mac(last)) return &ingress;
    }
    return nullptr;
  }

  RecordingPlane plane_;
  HopTable hops_;
  AddressShadow addresses_{plane_, hops_};
  IngressShadow shadow_{plane_, hops_, addresses_};
};

TEST_F(IngressShadowTest, TheTwinsOwnAddressIsTheRouters) {
  EXPECT_EQ(announced().mac, mac(5));
  LinkMessage changed = twin();
  changed.mac = mac(77);
  shadow_.apply(changed);
  EXPECT_EQ(announced().mac, mac(77));
  hops_.set_port(5, std::nullopt);
  shadow_.moved();
  EXPECT_EQ(announced(), function::PortIngress{}) << "the port's own again";
}

TEST_F(IngressShadowTest, AMacvlanIsRoutedWhereTheKernelWould) {
  shadow_.apply(upper(6, "macvlan", MACVLAN_MODE_BRIDGE));
  ASSERT_NE(more(6), nullptr);
  EXPECT_FALSE(more(6)->routes_ipv4) << "forwarding is off";
  set(4, 6, 1);
  EXPECT_TRUE(more(6)->routes_ipv4);
  EXPECT_FALSE(more(6)->routes_ipv6);
  EXPECT_FALSE(more(6)->is_twin);
  address(6, "fe80::6");
  EXPECT_FALSE(more(6)->routes_ipv6) << "IPv6 forwarding is off";
  set(6, InterfaceSettingsMessage::all, 1);
  EXPECT_TRUE(more(6)->routes_ipv6);
  LinkMessage down = upper(6, "macvlan", MACVLAN_MODE_BRIDGE);
  down.flags = 0;
  shadow_.apply(down);
  EXPECT_FALSE(more(6)->routes_ipv4);
  LinkMessage member = upper(6, "macvlan", MACVLAN_MODE_PRIVATE);
  member.master = 9;
  shadow_.apply(member);
  EXPECT_FALSE(more(6)->routes_ipv4) << "in a bridge, or a VRF";
  shadow_.forget(6);
  EXPECT_EQ(more(6), nullptr);
}

TEST_F(IngressShadowTest, OtherInterfacesOnATwinAreTheKernels) {
  for (const char* kind : {"macvtap", "vlan", "ipvlan", "hsr"}) {
    SCOPED_TRACE(kind);
    shadow_.apply(upper(6, kind, kind[0] == 'm' ? MACVLAN_MODE_VEPA : 0));
    set(4, 6, 1);
    ASSERT_NE(more(6), nullptr);
    EXPECT_FALSE(more(6)->routes_ipv4);
    EXPECT_FALSE(announced().everything);
  }
  LinkMessage same = upper(6, "vlan");
  same.mac = mac(5);
  shadow_.apply(same);
  EXPECT_TRUE(announced().more.empty()) << "it has no address of its own";
}

TEST_F(IngressShadowTest, ATwinInAMasterIsTheKernelsWhole) {
  LinkMessage member = twin();
  member.master = 9;
  shadow_.apply(member);
  EXPECT_TRUE(announced().everything);
  shadow_.apply(twin());
  EXPECT_FALSE(announced().everything);
  for (const std::uint32_t mode : {MACVLAN_MODE_PASSTHRU, MACVLAN_MODE_SOURCE}) {
    shadow_.apply(upper(6, "macvlan", mode));
    EXPECT_TRUE(announced().everything) << mode;
    shadow_.forget(6);
    EXPECT_FALSE(announced().everything) << mode;
  }
}

TEST_F(IngressShadowTest, AddressesOfTheFilterAreTheKernels) {
  link_address(8);
  ASSERT_NE(more(8), nullptr);
  EXPECT_FALSE(more(8)->routes_ipv4);
  shadow_.begin_link_addresses();
  link_address(9);
  shadow_.end_link_addresses();
  EXPECT_EQ(more(8), nullptr) << "the dump does not name it";
  ASSERT_NE(more(9), nullptr);
  link_address(9, true);
  EXPECT_EQ(more(9), nullptr);
}

TEST_F(IngressShadowTest, APromiscuousTwinTakesFramesForOthers) {
  LinkMessage link = twin();
  link.promiscuity = 1;
  shadow_.apply(link);
  EXPECT_TRUE(announced().other_hosts);
  link_address(8);
  EXPECT_FALSE(announced().other_hosts) << "for its filter";
  link.promiscuity = 2;
  shadow_.apply(link);
  EXPECT_TRUE(announced().other_hosts);
}

TEST_F(IngressShadowTest, TheLargerReversePathFilterHolds) {
  const auto filter = [&](std::uint32_t all, std::uint32_t own) {
    set(4, InterfaceSettingsMessage::all, {}, all);
    set(4, 5, {}, own);
    return announced().twin.reverse_path;
  };
  EXPECT_EQ(filter(0, 0), ReversePath::off);
  EXPECT_EQ(filter(1, 0), ReversePath::strict);
  EXPECT_EQ(filter(0, 1), ReversePath::strict);
  EXPECT_EQ(filter(1, 2), ReversePath::loose);
  EXPECT_EQ(filter(2, 1), ReversePath::loose);
  EXPECT_FALSE(announced().twin.has_ipv4);
  address(5, "10.0.0.1");
  EXPECT_TRUE(announced().twin.has_ipv4);
}

}  // namespace
}  // namespace sluice::control::netlink
