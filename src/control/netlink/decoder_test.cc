#include "control/netlink/decoder.h"

#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

namespace sluice::control::netlink {
namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
Bytes bytes_of(const T& value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  return {data, data + sizeof value};
}

Bytes address(const std::string& text) {
  const auto parsed = packet::IpAddress::parse(text).value();
  const auto* data = reinterpret_cast<const std::byte*>(parsed.bytes.data());
  return {data, data + parsed.bits() / 8};
}

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes padded(Bytes bytes) {
  bytes.resize((bytes.size() + 3) & ~std::size_t{3});
  return bytes;
}

Bytes attribute(std::uint16_t type, const Bytes& payload) {
  return padded(bytes_of(nlattr{static_cast<std::uint16_t>(sizeof(nlattr) + payload.size()), type}) + payload);
}

template <typename Fixed>
Bytes message(std::uint16_t type, const Fixed& fixed, const Bytes& attributes, std::uint16_t flags = 0) {
  const Bytes body = padded(bytes_of(fixed)) + attributes;
  return padded(bytes_of(nlmsghdr{static_cast<std::uint32_t>(sizeof(nlmsghdr) + body.size()), type, flags, 7, 42}) +
                body);
}

// A member of RTA_MULTIPATH.
Bytes member(int ifindex, std::uint8_t hops, std::uint8_t flags, const Bytes& attributes) {
  rtnexthop fixed{};
  fixed.rtnh_len = static_cast<std::uint16_t>(sizeof fixed + attributes.size());
  fixed.rtnh_flags = flags;
  fixed.rtnh_hops = hops;
  fixed.rtnh_ifindex = ifindex;
  return bytes_of(fixed) + attributes;
}

rtmsg route(int family, std::uint8_t length, std::uint8_t type = RTN_UNICAST) {
  rtmsg fixed{};
  fixed.rtm_family = static_cast<unsigned char>(family);
  fixed.rtm_dst_len = length;
  fixed.rtm_type = type;
  fixed.rtm_table = RT_TABLE_MAIN;
  fixed.rtm_protocol = RTPROT_STATIC;
  return fixed;
}

struct Recorder : Visitor {
  void on_link(const Header& header, const LinkMessage& message) override { links.push_back(message), last = header; }
  void on_address(const Header& header, const AddressMessage& message) override {
    addresses.push_back(message), last = header;
  }
  void on_link_address(const Header& header, const LinkAddressMessage& message) override {
    link_addresses.push_back(message), last = header;
  }
  void on_interface_settings(const Header& header, const InterfaceSettingsMessage& message) override {
    settings.push_back(message), last = header;
  }
  void on_neighbour(const Header& header, const NeighbourMessage& message) override {
    neighbours.push_back(message), last = header;
  }
  void on_route(const Header& header, const RouteMessage& message) override {
    routes.push_back(message), last = header;
  }
  void on_nexthop(const Header& header, const NexthopMessage& message) override {
    nexthops.push_back(message), last = header;
  }
  void on_answer(const Header& header, int error) override { answers.push_back(error), last = header; }
  void on_malformed(const Header& header) override { ++malformed, last = header; }
  std::size_t decoded() const {
    return links.size() + addresses.size() + link_addresses.size() + settings.size() + neighbours.size() +
           routes.size() + nexthops.size() + answers.size();
  }

  std::vector<LinkMessage> links;
  std::vector<AddressMessage> addresses;
  std::vector<LinkAddressMessage> link_addresses;
  std::vector<InterfaceSettingsMessage> settings;
  std::vector<NeighbourMessage> neighbours;
  std::vector<RouteMessage> routes;
  std::vector<NexthopMessage> nexthops;
  std::vector<int> answers;
  int malformed = 0;
  Header last;
};

Recorder decoded(const Bytes& bytes) {
  Recorder recorder;
  decode(bytes, recorder);
  return recorder;
}

std::string hop_text(const Hop& hop) {
  return std::to_string(hop.ifindex) + " " + hop.gateway.str() + " *" + std::to_string(hop.weight) +
         (hop.dead ? " dead" : "") + (hop.encapsulated ? " encapsulated" : "");
}

Bytes link_bytes(std::uint16_t type = RTM_NEWLINK, unsigned char family = AF_UNSPEC) {
  ifinfomsg fixed{};
  fixed.ifi_family = family;
  fixed.ifi_index = 5;
  fixed.ifi_flags = 0x10041;
  const Bytes name = {std::byte{'s'}, std::byte{'l'}, std::byte{'-'}, std::byte{'a'}, std::byte{0}};
  const Bytes mac = bytes_of(std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 9});
  return message(type, fixed,
                 attribute(IFLA_IFNAME, name) + attribute(IFLA_MTU, bytes_of(1500U)) + attribute(IFLA_ADDRESS, mac));
}

Bytes macvlan_bytes(const char* kind = "macvlan", const Bytes& more = {}) {
  ifinfomsg fixed{};
  fixed.ifi_index = 6;
  const Bytes name = {reinterpret_cast<const std::byte*>(kind), reinterpret_cast<const std::byte*>(kind) + 7};
  const Bytes data = attribute(IFLA_MACVLAN_MODE, bytes_of(std::uint32_t{MACVLAN_MODE_BRIDGE}));
  return message(RTM_NEWLINK, fixed,
                 attribute(IFLA_LINK, bytes_of(5)) + attribute(IFLA_MASTER, bytes_of(9)) +
                     attribute(IFLA_PROMISCUITY, bytes_of(2U)) +
                     attribute(IFLA_LINKINFO, attribute(IFLA_INFO_DATA, data) + attribute(IFLA_INFO_KIND, name)) +
                     more);
}

Bytes link_address_bytes(std::uint8_t flags = NTF_SELF, std::uint8_t first = 0) {
  ndmsg fixed{};
  fixed.ndm_family = AF_BRIDGE;
  fixed.ndm_ifindex = 5;
  fixed.ndm_flags = flags;
  return message(RTM_NEWNEIGH, fixed,
                 attribute(NDA_LLADDR, bytes_of(std::array<std::uint8_t, 6>{first, 0, 0x5e, 0, 1, 1})));
}

Bytes settings_bytes(unsigned char family = AF_INET) {
  return message(RTM_NEWNETCONF, netconfmsg{family},
                 attribute(NETCONFA_IFINDEX, bytes_of(-1)) + attribute(NETCONFA_RP_FILTER, bytes_of(2)));
}

Bytes neighbour_bytes() {
  ndmsg fixed{};
  fixed.ndm_family = AF_INET6;
  fixed.ndm_ifindex = 5;
  fixed.ndm_state = NUD_STALE;
  return message(RTM_NEWNEIGH, fixed,
                 attribute(NDA_DST, address("fe80::2")) +
                     attribute(NDA_LLADDR, bytes_of(std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 9})));
}

Bytes multipath_bytes() {
  const Bytes gateway6 = bytes_of(std::uint16_t{AF_INET6}) + address("fe80::7");
  const Bytes members = member(5, 0, 0, attribute(RTA_GATEWAY, address("10.0.0.2"))) +
                        member(6, 255, RTNH_F_DEAD, attribute(RTA_VIA, gateway6));
  return message(RTM_NEWROUTE, route(AF_INET, 24),
                 attribute(RTA_DST, address("192.0.2.0")) + attribute(RTA_TABLE, bytes_of(1000U)) +
                     attribute(RTA_PRIORITY, bytes_of(20U)) + attribute(RTA_MULTIPATH | NLA_F_NESTED, members),
                 NLM_F_CREATE | NLM_F_APPEND);
}

Bytes group_bytes() {
  nhmsg fixed{};
  const Bytes members = bytes_of(nexthop_grp{11, 0, 0, 0}) + bytes_of(nexthop_grp{12, 255, 1, 0});
  return message(RTM_NEWNEXTHOP, fixed, attribute(NHA_ID, bytes_of(20U)) + attribute(NHA_GROUP, members));
}

TEST(NetlinkDecoder, Links) {
  const auto result = decoded(link_bytes() + link_bytes(RTM_DELLINK));
  ASSERT_EQ(result.links.size(), 2U);
  EXPECT_EQ(result.links[0].name, "sl-a");
  EXPECT_EQ(result.links[0].ifindex, 5);
  EXPECT_EQ(result.links[0].mtu, 1500U);
  EXPECT_EQ(result.links[0].flags, 0x10041U);
  EXPECT_EQ(result.links[0].mac->str(), "02:00:00:00:00:09");
  EXPECT_FALSE(result.links[0].removed);
  EXPECT_TRUE(result.links[1].removed);
  EXPECT_EQ(result.malformed, 0);
  EXPECT_EQ(decoded(link_bytes(RTM_NEWLINK, AF_BRIDGE)).decoded(), 0U);
}

TEST(NetlinkDecoder, LinksOnOthers) {
  const auto result = decoded(macvlan_bytes() + macvlan_bytes("macvlan", attribute(IFLA_LINK_NETNSID, bytes_of(0))) +
                              macvlan_bytes("ipvlan"));
  ASSERT_EQ(result.links.size(), 3U);
  EXPECT_EQ(result.links[0].lower, 5);
  EXPECT_EQ(result.links[0].master, 9);
  EXPECT_EQ(result.links[0].promiscuity, 2U);
  EXPECT_EQ(result.links[0].kind, "macvlan");
  EXPECT_EQ(result.links[0].macvlan_mode, std::uint32_t{MACVLAN_MODE_BRIDGE});
  EXPECT_EQ(result.links[1].lower, 0) << "of another network namespace";
  EXPECT_EQ(result.links[2].macvlan_mode, 0U) << "the same number means something else there";
  EXPECT_EQ(
      decoded(macvlan_bytes("macvlan", attribute(IFLA_LINKINFO, bytes_of(nlattr{200, IFLA_INFO_KIND})))).malformed, 1);
}

TEST(NetlinkDecoder, LinkAddresses) {
  const auto result = decoded(link_address_bytes() + link_address_bytes(NTF_MASTER) + link_address_bytes(NTF_SELF, 1));
  ASSERT_EQ(result.link_addresses.size(), 1U) << "neither what a bridge has learnt nor a group";
  EXPECT_EQ(result.link_addresses[0].mac.str(), "00:00:5e:00:01:01");
  EXPECT_EQ(result.link_addresses[0].ifindex, 5);
}

TEST(NetlinkDecoder, InterfaceSettings) {
  const auto result = decoded(settings_bytes() + settings_bytes(AF_INET6) + settings_bytes(28 /* AF_MPLS */));
  ASSERT_EQ(result.settings.size(), 2U);
  EXPECT_EQ(result.settings[0].ifindex, InterfaceSettingsMessage::all);
  EXPECT_EQ(result.settings[0].family, 4);
  EXPECT_EQ(result.settings[0].rp_filter, 2U);
  EXPECT_EQ(result.settings[0].forwarding, std::nullopt);
  EXPECT_EQ(result.settings[1].family, 6);
  EXPECT_EQ(decoded(message(RTM_NEWNETCONF, netconfmsg{AF_INET}, {})).malformed, 1) << "of no interface";
}

TEST(NetlinkDecoder, Addresses) {
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  fixed.ifa_prefixlen = 24;
  fixed.ifa_index = 5;
  // On a point-to-point link IFA_ADDRESS is the other end.
  const auto result = decoded(message(
      RTM_DELADDR, fixed, attribute(IFA_ADDRESS, address("10.0.0.2")) + attribute(IFA_LOCAL, address("10.0.0.1"))));
  ASSERT_EQ(result.addresses.size(), 1U);
  EXPECT_TRUE(result.addresses[0].removed);
  EXPECT_EQ(result.addresses[0].address.str(), "10.0.0.1");
  EXPECT_EQ(result.addresses[0].prefix_length, 24);
  EXPECT_EQ(decoded(message(RTM_NEWADDR, fixed, {})).malformed, 1);
  // What does not fit the header's byte of flags is in the attribute.
  fixed.ifa_scope = RT_SCOPE_LINK;
  fixed.ifa_flags = IFA_F_PERMANENT;
  const Bytes local = attribute(IFA_LOCAL, address("10.0.0.1"));
  EXPECT_EQ(decoded(message(RTM_NEWADDR, fixed, local)).addresses.at(0).scope, RT_SCOPE_LINK);
  EXPECT_EQ(decoded(message(RTM_NEWADDR, fixed, local)).addresses.at(0).flags, std::uint32_t{IFA_F_PERMANENT});
  const Bytes flags = attribute(IFA_FLAGS, bytes_of(std::uint32_t{IFA_F_NOPREFIXROUTE | IFA_F_DEPRECATED}));
  EXPECT_EQ(decoded(message(RTM_NEWADDR, fixed, local + flags)).addresses.at(0).flags,
            std::uint32_t{IFA_F_NOPREFIXROUTE | IFA_F_DEPRECATED});
}

TEST(NetlinkDecoder, Neighbours) {
  const auto result = decoded(neighbour_bytes());
  ASSERT_EQ(result.neighbours.size(), 1U);
  EXPECT_EQ(result.neighbours[0].address.str(), "fe80::2");
  EXPECT_EQ(result.neighbours[0].mac->str(), "02:00:00:00:00:09");
  EXPECT_EQ(result.neighbours[0].state, NUD_STALE);
  EXPECT_EQ(result.last.sequence, 7U);
  EXPECT_EQ(result.last.port_id, 42U);
}

TEST(NetlinkDecoder, Routes) {
  struct Case {
    const char* what;
    Bytes bytes;
    const char* prefix;
    std::vector<std::string> hops;
  };
  auto dead = route(AF_INET6, 64);
  dead.rtm_flags = RTNH_F_DEAD | RTNH_F_LINKDOWN;
  const Bytes oif = attribute(RTA_OIF, bytes_of(5));
  const std::vector<Case> cases = {
      {"default",
       message(RTM_NEWROUTE, route(AF_INET, 0), oif + attribute(RTA_GATEWAY, address("10.0.0.2"))),
       "0.0.0.0/0",
       {"5 10.0.0.2 *1"}},
      {"connected",
       message(RTM_NEWROUTE, route(AF_INET, 8), oif + attribute(RTA_DST, address("10.0.0.0"))),
       "10.0.0.0/8",
       {"5 none *1"}},
      {"host bits",
       message(RTM_NEWROUTE, route(AF_INET, 8), oif + attribute(RTA_DST, address("10.1.2.3"))),
       "10.0.0.0/8",
       {"5 none *1"}},
      {"dead",
       message(RTM_NEWROUTE, dead, oif + attribute(RTA_DST, address("2001:db8::"))),
       "2001:db8::/64",
       {"5 none *1 dead"}},
      {"no gateway",
       message(RTM_NEWROUTE, route(AF_INET6, 0), oif + attribute(RTA_GATEWAY, address("::"))),
       "::/0",
       {"5 none *1"}},
      {"multipath", multipath_bytes(), "192.0.2.0/24", {"5 10.0.0.2 *1", "6 fe80::7 *256 dead"}},
      {"encapsulated",
       message(RTM_NEWROUTE, route(AF_INET, 0), oif + attribute(RTA_ENCAP_TYPE, bytes_of(std::uint16_t{1}))),
       "0.0.0.0/0",
       {"5 none *1 encapsulated"}},
      {"blackhole", message(RTM_NEWROUTE, route(AF_INET, 0, RTN_BLACKHOLE), {}), "0.0.0.0/0", {}},
  };
  for (const auto& test : cases) {
    const auto result = decoded(test.bytes);
    ASSERT_EQ(result.routes.size(), 1U) << test.what;
    EXPECT_EQ(result.routes[0].prefix.str(), test.prefix) << test.what;
    std::vector<std::string> hops;
    for (const Hop& hop : result.routes[0].hops) hops.push_back(hop_text(hop));
    EXPECT_EQ(hops, test.hops) << test.what;
  }
  const auto multipath = decoded(multipath_bytes());
  EXPECT_EQ(multipath.routes[0].table, 1000U);
  EXPECT_EQ(multipath.routes[0].metric, 20U);
  EXPECT_EQ(multipath.last.flags, NLM_F_CREATE | NLM_F_APPEND);
  rta_cacheinfo expires{};
  expires.rta_expires = -300;
  const Bytes pref = attribute(RTA_PREF, bytes_of(std::uint8_t{3}));
  const auto last =
      decoded(message(RTM_NEWROUTE, route(AF_INET6, 0), attribute(RTA_CACHEINFO, bytes_of(expires)) + pref) +
              multipath_bytes());
  EXPECT_EQ(last.routes.at(0).expires, -300);
  EXPECT_EQ(last.routes.at(0).preference, -1);
  EXPECT_EQ(last.routes.at(1).expires, 0);
  EXPECT_EQ(last.routes.at(1).preference, 0);
  const auto by_id = decoded(message(RTM_DELROUTE, route(AF_INET, 0), attribute(RTA_NH_ID, bytes_of(9U))));
  EXPECT_EQ(by_id.routes.at(0).nexthop_id, 9U);
  EXPECT_TRUE(by_id.routes[0].removed);
}

TEST(NetlinkDecoder, OneRouteLeavesNothingInTheNext) {
  const auto result = decoded(multipath_bytes() + message(RTM_NEWROUTE, route(AF_INET, 0), {}));
  ASSERT_EQ(result.routes.size(), 2U);
  EXPECT_TRUE(result.routes[1].hops.empty());
  EXPECT_EQ(result.routes[1].metric, 0U);
  EXPECT_EQ(result.routes[1].table, RT_TABLE_MAIN);
  EXPECT_EQ(result.routes[1].prefix.str(), "0.0.0.0/0");
}

TEST(NetlinkDecoder, NexthopObjects) {
  nhmsg fixed{};
  fixed.nh_family = AF_INET;
  const Bytes single = message(
      RTM_NEWNEXTHOP, fixed,
      attribute(NHA_ID, bytes_of(11U)) + attribute(NHA_OIF, bytes_of(5)) + attribute(NHA_GATEWAY, address("10.0.0.2")));
  const Bytes blackhole =
      message(RTM_DELNEXTHOP, fixed, attribute(NHA_ID, bytes_of(30U)) + attribute(NHA_BLACKHOLE, {}));
  const auto result = decoded(single + group_bytes() + blackhole);
  ASSERT_EQ(result.nexthops.size(), 3U);
  EXPECT_EQ(hop_text(result.nexthops[0].hop), "5 10.0.0.2 *1");
  ASSERT_EQ(result.nexthops[1].group.size(), 2U);
  EXPECT_EQ(result.nexthops[1].group[0].id, 11U);
  EXPECT_EQ(result.nexthops[1].group[0].weight, 1U);
  EXPECT_EQ(result.nexthops[1].group[1].weight, 512U);
  EXPECT_TRUE(result.nexthops[2].blackhole);
  EXPECT_TRUE(result.nexthops[2].removed);
}

TEST(NetlinkDecoder, Answers) {
  const auto result = decoded(message(NLMSG_DONE, 0, {}) + message(NLMSG_ERROR, nlmsgerr{-ENOENT, {}}, {}) +
                              padded(bytes_of(nlmsghdr{16, NLMSG_DONE, 0, 0, 0})));
  EXPECT_EQ(result.answers, (std::vector<int>{0, ENOENT, 0}));
}

TEST(NetlinkDecoder, RefusesWrongSizes) {
  auto longer = route(AF_INET, 33);
  const std::vector<std::pair<const char*, Bytes>> cases = {
      {"a 16-byte gateway of an IPv4 route", attribute(RTA_GATEWAY, address("fe80::1"))},
      {"a 2-byte metric", attribute(RTA_PRIORITY, bytes_of(std::uint16_t{1}))},
      {"an attribute longer than the message", bytes_of(nlattr{200, RTA_DST})},
      {"an attribute shorter than its header", bytes_of(nlattr{2, RTA_DST})},
      {"a hop longer than its list", attribute(RTA_MULTIPATH, bytes_of(rtnexthop{200, 0, 0, 1}))},
      {"a hop shorter than its header", attribute(RTA_MULTIPATH, bytes_of(rtnexthop{0, 0, 0, 1}))},
      {"a gateway of no family", attribute(RTA_VIA, bytes_of(std::uint16_t{99}) + address("10.0.0.1"))},
  };
  for (const auto& [what, attributes] : cases) {
    const Bytes good = message(RTM_NEWROUTE, route(AF_INET, 0), {});
    const auto result = decoded(message(RTM_NEWROUTE, route(AF_INET, 24), attributes) + good);
    EXPECT_EQ(result.malformed, 1) << what;
    EXPECT_EQ(result.routes.size(), 1U) << what;  // the good one behind it
  }
  EXPECT_EQ(decoded(message(RTM_NEWROUTE, longer, {})).malformed, 1);
  EXPECT_EQ(decoded(message(RTM_NEWNEXTHOP, nhmsg{}, {})).malformed, 1);
  EXPECT_EQ(decoded(message(RTM_NEWNEXTHOP, nhmsg{}, attribute(NHA_GROUP, bytes_of(7U)))).malformed, 1);
}

TEST(NetlinkDecoder, SkipsOtherFamiliesAndTypes) {
  const auto result = decoded(message(RTM_NEWROUTE, route(28 /* AF_MPLS */, 20), {}) + message(RTM_NEWRULE, 0, {}) +
                              message(NLMSG_NOOP, 0, {}) + link_bytes());
  EXPECT_EQ(result.malformed, 0);
  EXPECT_EQ(result.decoded(), 1U);
}

// Every message cut at every byte, in memory of exactly that size: the sanitizers see any read behind it.
TEST(NetlinkDecoder, EndsCleanlyWhereverTheBytesEnd) {
  for (const Bytes& whole : {link_bytes(), macvlan_bytes(), link_address_bytes(), settings_bytes(), neighbour_bytes(),
                             multipath_bytes(), group_bytes()}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      const auto result = decoded(cut);
      EXPECT_EQ(result.decoded(), 0U) << length;
      EXPECT_EQ(result.malformed, length == 0 ? 0 : 1) << length;
      if (length < sizeof(nlmsghdr)) continue;
      // The same with a length that claims to be whole.
      Bytes claimed = cut;
      const auto claim = static_cast<std::uint32_t>(length);
      std::memcpy(claimed.data(), &claim, sizeof claim);
      const auto honest = decoded(claimed);
      EXPECT_EQ(honest.decoded() + static_cast<std::size_t>(honest.malformed), 1U) << length;
    }
  }
}

TEST(NetlinkDecoder, SurvivesFlippedBytes) {
  const Bytes whole = link_bytes() + macvlan_bytes() + link_address_bytes() + settings_bytes() + neighbour_bytes() +
                      multipath_bytes() + group_bytes();
  std::mt19937 random(1);
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes broken = whole;
    for (int i = 0; i < 3; ++i) broken[random() % broken.size()] = static_cast<std::byte>(random());
    const auto result = decoded(broken);
    EXPECT_LE(result.decoded() + static_cast<std::size_t>(result.malformed), broken.size() / sizeof(nlmsghdr) + 1);
    refused += static_cast<std::size_t>(result.malformed);
  }
  EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace sluice::control::netlink
