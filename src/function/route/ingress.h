// Whose frames a port takes, and from whom: the link addresses that the kernel's interfaces on it have, and what the
// kernel checks of a source address there (reverse path filter, RFC 3704).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "packet/ip_address.h"

namespace sluice::function {

using PortIndex = std::uint16_t;

// net.ipv4.conf.*.rp_filter, the larger one of `all` and the interface's.
enum class ReversePath : std::uint8_t {
  off,
  strict,  // the route back to the source leaves by the interface that the frame came in by
  loose,   // there is a route back
};

// An interface of the kernel that takes frames of a port, by its own link address.
struct Ingress {
  bool routes_ipv4 = true, routes_ipv6 = true;  // as the kernel does; else such frames are punted
  bool is_twin = true;
  ReversePath reverse_path = ReversePath::off;  // of IPv4; IPv6 has no such setting
  bool has_ipv4 = true;                         // without an address the kernel's loose check is strict
  bool logs_martians = false;                   // the kernel is shown what fails, and logs it
  bool operator==(const Ingress&) const = default;
};

struct PortIngress {
  std::optional<packet::MacAddress> mac;  // of the twin; nothing: the port's own
  Ingress twin;
  // The kernel does something else with what comes in there than to route it (bridge, bond, VRF): all is punted.
  bool everything = false;
  bool other_hosts = false;  // frames for unknown link addresses are punted (promiscuous mode), not dropped
  std::vector<std::pair<packet::MacAddress, Ingress>> more;  // interfaces and addresses on top of the twin
  bool operator==(const PortIngress&) const = default;
};

}  // namespace sluice::function
