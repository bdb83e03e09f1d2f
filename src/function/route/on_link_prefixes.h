// The prefixes that lie on a link, by routes without a gateway, and the port of the longest one that covers an address.
// Those that lie elsewhere are here too: inside a longer one of them an address is not on a shorter one's link.
//
// Several routes may say where one prefix lies: the lowest metric decides.
//
// This answers where a gateway is, and routes through a gateway say nothing about that, however long or good they are.
// Where frames for the address itself go, and so whether a neighbour has a host route, is decided by the longest route
// in force (route_table.h). Under a route through a gateway the two differ, as in the kernel: it looks for a gateway
// among routes of link scope only, and for a destination among all.
//
// Thread-safety: none. Cost of every call: O(log n) for each different length of prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "function/control_plane.h"
#include "packet/ip_address.h"

namespace sluice::function {

class OnLinkPrefixes {
 public:
  // On the links of several ports (which one, no route says), on an interface that is no port's, this host, or nowhere.
  static constexpr PortIndex elsewhere = 0xffff;

  // The route of (prefix, metric) is on this port's link, or elsewhere; without a port it says nothing, or is gone.
  // False: that was known.
  bool set(const packet::IpPrefix& prefix, std::uint32_t metric, std::optional<PortIndex> port);
  // Nothing: no prefix covers the address, or the longest one lies elsewhere.
  std::optional<PortIndex> port_of(const packet::IpAddress& address) const;

 private:
  using Links = std::map<std::pair<packet::IpPrefix, std::uint32_t>, PortIndex>;
  std::map<std::uint8_t, Links, std::greater<>> by_length_;  // the longest first
};

}  // namespace sluice::function
