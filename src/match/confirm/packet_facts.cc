#include "match/confirm/packet_facts.h"

#include "packet/headers.h"

namespace sluice::match {

PacketFacts packet_of(std::uint8_t family, std::uint8_t protocol, const PacketEnd& source,
                      const PacketEnd& destination) {
  PacketFacts facts;
  facts.family = family;
  facts.source = packet::IpAddress::from_bytes(family, source.address);
  facts.destination = packet::IpAddress::from_bytes(family, destination.address);
  facts.protocol = protocol;
  facts.has_tcp = protocol == packet::protocol_tcp;
  facts.has_ports = packet::facts_have_ports(protocol);
  facts.source_port = source.port;
  facts.destination_port = destination.port;
  return facts;
}

std::optional<std::uint32_t> PacketFacts::field(HeaderField which) const {
  const auto when = [](bool there, std::uint32_t value) {
    return there ? std::optional<std::uint32_t>(value) : std::nullopt;
  };
  switch (which) {
    case HeaderField::payload_size:
      return when(family != 0, static_cast<std::uint32_t>(payload.size()));
    case HeaderField::ttl:
      return when(family != 0, ttl);
    case HeaderField::ip_id:
      return ip_id;
    case HeaderField::ip_proto:
      return when(family != 0, protocol);
    case HeaderField::tos:
      return when(family != 0, tos);
    case HeaderField::fragment_offset:
      return when(family != 0, fragment_offset);
    case HeaderField::icmp_type:
      return when(has_icmp, icmp_type);
    case HeaderField::icmp_code:
      return when(has_icmp, icmp_code);
    case HeaderField::icmp_id:
      return icmp_id;
    case HeaderField::icmp_sequence:
      return icmp_sequence;
    case HeaderField::tcp_sequence:
      return when(has_tcp, tcp_sequence);
    case HeaderField::tcp_acknowledgement:
      return when(has_tcp, tcp_acknowledgement);
    case HeaderField::tcp_window:
      return when(has_tcp, tcp_window);
  }
  return std::nullopt;
}

}  // namespace sluice::match
