#include "ipsec/selector.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>

#include "packet/headers.h"

namespace sluice::ipsec {
namespace {

bool is_icmp(std::uint8_t protocol) {
  return protocol == packet::protocol_icmp || protocol == packet::protocol_icmpv6;
}

struct ProtocolName {
  std::uint8_t protocol;
  std::string_view name;
};
constexpr ProtocolName protocols[] = {{packet::protocol_icmp, "icmp"}, {packet::protocol_icmpv6, "icmpv6"},
                                      {packet::protocol_tcp, "tcp"},   {packet::protocol_udp, "udp"},
                                      {packet::protocol_sctp, "sctp"}, {packet::protocol_gre, "gre"}};

std::string protocol_text(std::uint8_t protocol) {
  const auto* const named = std::ranges::find(protocols, protocol, &ProtocolName::protocol);
  return named == std::end(protocols) ? std::to_string(protocol) : std::string(named->name);
}

std::string match_text(PortMatch match) {
  std::string text = std::to_string(match.value & match.mask);
  if (match.mask != 0xffff) {
    char mask[8];
    std::snprintf(mask, sizeof mask, "/0x%x", match.mask);
    text += mask;
  }
  return text;
}

PortMatch normal_port(PortMatch match) {
  return {static_cast<std::uint16_t>(match.value & match.mask), match.mask};
}

}  // namespace

std::optional<std::uint8_t> parse_protocol(std::string_view text) {
  if (const auto* const named = std::ranges::find(protocols, text, &ProtocolName::name); named != std::end(protocols))
    return named->protocol;
  std::uint8_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool Selector::matches(const FlowKey& key) const {
  if (!source.contains(key.source) || !destination.contains(key.destination)) return false;
  if (protocol != 0 && protocol != key.protocol) return false;
  if (source_port.mask == 0 && destination_port.mask == 0) return true;
  return key.has_ports && source_port.has(key.source_port) && destination_port.has(key.destination_port);
}

Selector Selector::reversed() const {
  Selector other = *this;
  std::swap(other.source, other.destination);
  if (!is_icmp(protocol)) std::swap(other.source_port, other.destination_port);
  return other;
}

Selector Selector::normal() const {
  return {.source = packet::IpPrefix::of(source.address, source.length),
          .destination = packet::IpPrefix::of(destination.address, destination.length),
          .protocol = protocol,
          .source_port = normal_port(source_port),
          .destination_port = normal_port(destination_port)};
}

Expected<void> Selector::check() const {
  const auto fits = [](const packet::IpPrefix& prefix) {
    return (prefix.address.family == 4 || prefix.address.family == 6) && prefix.length <= prefix.address.bits();
  };
  if (!fits(source) || !fits(destination)) {
    return make_error("the selector " + str() + " needs a source and a destination, prefixes of IPv4 or IPv6");
  }
  if (source.address.family != destination.address.family) {
    return make_error("the selector " + str() + " has prefixes of two families; make it one for each");
  }
  return {};
}

std::string Selector::str() const {
  std::string text = source.str() + " -> " + destination.str();
  if (protocol != 0) text += " " + protocol_text(protocol);
  const bool from = source_port.mask != 0, to = destination_port.mask != 0;
  if (is_icmp(protocol)) {
    if (from) text += " type " + match_text(source_port);
    if (to) text += " code " + match_text(destination_port);
  } else {
    if (from) text += " from port " + match_text(source_port);
    if (to) text += (from ? " to port " : " port ") + match_text(destination_port);
  }
  return text;
}

}  // namespace sluice::ipsec
