// Selectors and policies of the security policy database (SPD, RFC 4301 section 4.4.1): values only.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"

namespace sluice::ipsec {

enum class Protocol : std::uint8_t;
enum class Mode : std::uint8_t;
enum class Direction : std::uint8_t;

// Those that are `value` in the bits of `mask`; host order. Mask 0: any.
struct PortMatch {
  std::uint16_t value = 0, mask = 0;
  bool has(std::uint16_t port) const { return ((port ^ value) & mask) == 0; }
  auto operator<=>(const PortMatch&) const = default;
};

// What a packet says of itself. ICMP: the type as source port and the code as destination port, as XFRM has it. Of a
// later fragment, and of protocols without ports, they are not known.
struct FlowKey {
  packet::IpAddress source, destination;
  std::uint8_t protocol = 0;
  bool has_ports = false;
  std::uint16_t source_port = 0, destination_port = 0;
  bool operator==(const FlowKey&) const = default;
};

// Both prefixes are of one family. A selector that asks for ports matches no packet whose ports are not known.
struct Selector {
  packet::IpPrefix source, destination;
  std::uint8_t protocol = 0;  // 0: any
  PortMatch source_port, destination_port;

  bool matches(const FlowKey& key) const;
  // Of the packets that answer. ICMP's type and code stay as they are.
  Selector reversed() const;
  // The one form of all that match the same packets: no bits outside of masks.
  Selector normal() const;
  // An Error: the prefixes are of two families or none, or longer than an address.
  Expected<void> check() const;
  // "10.0.0.0/8 -> 10.1.0.0/16 udp port 53": the destination's. Also "tcp from port 1024/0xfc00 to port 80",
  // "tcp from port 80", "icmp type 8 code 0", "89" for a protocol without a name here, and only prefixes for any.
  std::string str() const;
  auto operator<=>(const Selector&) const = default;
};

// As str() has a protocol: "tcp", "89".
std::optional<std::uint8_t> parse_protocol(std::string_view text);

enum class Action : std::uint8_t { protect, bypass, discard };

// What a packet of a policy is protected with. In transport mode addresses are the packet's own, or those of the tunnel
// that it is in by the template before.
struct Template {
  Protocol protocol;
  Mode mode;
  packet::IpAddress source = {}, destination = {};  // of the tunnel
  std::uint32_t reqid = 0;                          // 0: any SA between these addresses
  std::uint32_t spi = 0;                            // 0: any
  bool optional = false;                            // in: the packet may come without it
  auto operator<=>(const Template&) const = default;
};
inline constexpr std::size_t most_templates = 2;

struct Policy {
  Direction direction;
  Selector selector;
  // The lowest number is looked at first, as in XFRM and strongSwan; of equal ones the longer prefixes (the sum of both
  // lengths), then who came first.
  std::uint32_t priority = 0;
  Action action = Action::protect;
  std::vector<Template> templates = {};  // of Action::protect: ESP, AH, or ESP and then AH around it
  std::string name = {};                 // of the configuration; empty: from elsewhere
  bool operator==(const Policy&) const = default;
};

}  // namespace sluice::ipsec
