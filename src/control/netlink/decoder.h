// Decodes rtnetlink messages (links, addresses, settings, neighbours, routes, next-hop objects) into plain
// structs.
//
// Pure: bytes in, calls on a Visitor out; no socket, no state, no policy. Any bytes are safe to decode: a message or an
// attribute that is cut short, has a wrong size or claims more than there is becomes on_malformed(), never a read
// outside the span. Messages of other families and types (bridge, MPLS, multicast routing, …) are skipped silently.
//
// Formats: rtnetlink(7), linux/rtnetlink.h, linux/nexthop.h, linux/neighbour.h; RFC 8950 next hops (RTA_VIA).
// Thread-safety: none needed. Cost: about 100 ns for a route; hop vectors are reused between messages of one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "packet/ip_address.h"

namespace sluice::control::netlink {

struct Header {
  std::uint16_t type = 0;   // RTM_*
  std::uint16_t flags = 0;  // NLM_F_*
  std::uint32_t sequence = 0;
  std::uint32_t port_id = 0;
};

struct LinkMessage {
  bool removed = false;
  int ifindex = 0;
  std::uint32_t flags = 0;     // IFF_*
  std::uint8_t operstate = 0;  // IF_OPER_*
  std::string name;
  std::uint32_t mtu = 0;
  std::optional<packet::MacAddress> mac;  // absent: not an Ethernet address
  int master = 0;                         // bridge, bond, VRF, … that it is in
  int lower = 0;                          // that it lies on, of the same network namespace
  std::string kind;                       // "macvlan", "vlan", …; empty: none
  std::uint32_t macvlan_mode = 0;         // MACVLAN_MODE_*, of a macvlan or macvtap
  std::uint32_t promiscuity = 0;          // how many want all frames, the interface's flag included
};

// A unicast link address whose frames an interface takes besides its own (macvlan, `bridge fdb add ... self`).
struct LinkAddressMessage {
  bool removed = false;
  int ifindex = 0;
  packet::MacAddress mac;
};

// Settings of IP on an interface (net.ipv4.conf, net.ipv6.conf); what is absent was not said.
struct InterfaceSettingsMessage {
  static constexpr int all = -1, initial = -2;  // "default"
  bool removed = false;
  std::uint8_t family = 0;  // 4, 6
  int ifindex = 0;          // or one of the above
  std::optional<std::uint32_t> forwarding, rp_filter, ignores_routes_with_linkdown;
};

struct AddressMessage {
  bool removed = false;
  int ifindex = 0;
  packet::IpAddress address;  // the local end of a point-to-point link
  std::uint8_t prefix_length = 0;
  std::uint8_t scope = 0;   // RT_SCOPE_*
  std::uint32_t flags = 0;  // IFA_F_*
};

struct NeighbourMessage {
  bool removed = false;
  int ifindex = 0;
  std::uint16_t state = 0;  // NUD_*
  std::uint8_t flags = 0;   // NTF_*
  packet::IpAddress address;
  std::optional<packet::MacAddress> mac;
};

struct Hop {
  int ifindex = 0;
  packet::IpAddress gateway;  // empty: on the link. May be IPv6 under an IPv4 prefix
  std::uint32_t weight = 1;
  bool dead = false;          // the kernel does not use it now (link down)
  bool encapsulated = false;  // MPLS, SRv6, …
  bool operator==(const Hop&) const = default;
};

struct RouteMessage {
  bool removed = false;
  packet::IpPrefix prefix;
  std::uint8_t source_length = 0;  // not 0: the route depends on the source address
  std::uint8_t tos = 0;
  std::uint8_t type = 0;      // RTN_*
  std::uint8_t protocol = 0;  // RTPROT_*
  std::uint32_t table = 0;
  std::uint32_t metric = 0;
  std::uint32_t flags = 0;       // RTM_F_*, RTNH_F_*
  std::uint32_t nexthop_id = 0;  // not 0: the hops are those of this next-hop object; `hops` may be empty
  std::int32_t expires = 0;      // ticks of 1/100 s until the kernel uses it no more; negative: it does not; 0: never
  std::int8_t preference = 0;    // of RFC 4191: 1 high, -1 low; only among IPv6 routes of one metric
  std::vector<Hop> hops;
};

struct NexthopMessage {
  struct Member {
    std::uint32_t id = 0;
    std::uint32_t weight = 1;
    bool operator==(const Member&) const = default;
  };
  bool removed = false;
  std::uint32_t id = 0;
  bool blackhole = false;
  bool fdb = false;           // for bridges' forwarding tables, not for routes
  Hop hop;                    // of a single next hop
  std::vector<Member> group;  // not empty: a group of other next hops
};

class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void on_link(const Header& header, const LinkMessage& message) = 0;
  virtual void on_address(const Header& header, const AddressMessage& message) = 0;
  virtual void on_link_address(const Header& header, const LinkAddressMessage& message) = 0;
  virtual void on_interface_settings(const Header& header, const InterfaceSettingsMessage& message) = 0;
  virtual void on_neighbour(const Header& header, const NeighbourMessage& message) = 0;
  virtual void on_route(const Header& header, const RouteMessage& message) = 0;
  virtual void on_nexthop(const Header& header, const NexthopMessage& message) = 0;
  // The end of a dump (NLMSG_DONE) or the answer to a request (NLMSG_ERROR); `error` is 0 or an errno value.
  virtual void on_answer(const Header& header, int error) = 0;
  // A message that does not hold what its type promises; the rest of the buffer is decoded if its length allows.
  virtual void on_malformed(const Header& header) = 0;
};

// Decodes every message of `bytes`, what one recv() returned.
void decode(std::span<const std::byte> bytes, Visitor& visitor);

}  // namespace sluice::control::netlink
