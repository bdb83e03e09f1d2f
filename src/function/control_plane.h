// What a control plane gives the router: links, addresses, neighbours, routes. The netlink mirror and the static route
// file both speak this interface; the router implements it.
//
// Thread-safety: one caller at a time (the control thread), while lanes forward. No call stalls a lane or a cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "function/route/ingress.h"
#include "packet/ip_address.h"

namespace sluice::function {

struct NextHop {
  PortIndex port = 0;
  packet::IpAddress gateway;  // empty: the destination is on the link
  std::uint8_t weight = 1;
};

enum class RouteKind : std::uint8_t {
  unicast,      // through `next_hops` (more than one: ECMP)
  local,        // an address of this host, or (Route::elsewhere) what only the kernel forwards: punt
  blackhole,    // drop silently
  unreachable,  // the host's kernel answers with an ICMP error
};

// Of routes that the configuration itself names: every route of the kernel is better.
inline constexpr std::uint32_t static_metric = 1U << 31;

// The most next hops that one route can have.
inline constexpr std::size_t most_next_hops = 64;

struct Route {
  packet::IpPrefix prefix;
  RouteKind kind = RouteKind::unicast;
  std::vector<NextHop> next_hops;
  std::uint32_t metric = 0;
  std::uint32_t protocol = 0;  // RTPROT_*: 2 kernel, 4 static, 186 bgp, …
  bool elsewhere = false;      // of kind local: the kernel forwards it, by an interface that is no port's
  bool operator==(const Route&) const = default;
};

inline bool operator==(const NextHop& a, const NextHop& b) {
  return a.port == b.port && a.gateway == b.gateway && a.weight == b.weight;
}

class ControlPlane {
 public:
  virtual ~ControlPlane() = default;
  // Adds or replaces the route of (prefix, metric). Error: table full, a port that does not exist, or more
  // than most_next_hops.
  virtual Expected<void> add_route(const Route& route) = 0;
  virtual Expected<void> remove_route(const packet::IpPrefix& prefix, std::uint32_t metric) = 0;
  // Routes through the neighbour are sent to it; frames for the address itself only while a route says that it is on
  // this link. An Error (table full): they are not for now, but routes through it may be, until remove_neighbour.
  virtual Expected<void> add_neighbour(PortIndex port, const packet::IpAddress& address,
                                       const packet::MacAddress& mac) = 0;
  virtual Expected<void> remove_neighbour(PortIndex port, const packet::IpAddress& address) = 0;
  virtual void set_link(PortIndex port, bool up, std::uint32_t mtu) = 0;
  // The address of `family` (4, 6) from which the router answers what came in by this port; without a port: by any that
  // has none of its own. Empty: there is none any more.
  virtual void set_source(std::optional<PortIndex> port, int family, const packet::IpAddress& address) = 0;
  // Whose frames the port takes, and from whom: ingress.h.
  virtual void set_ingress(PortIndex port, const PortIngress& ingress) = 0;
};

}  // namespace sluice::function
