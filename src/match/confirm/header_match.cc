#include "match/confirm/header_match.h"

#include <algorithm>

#include "match/rules/rule_scope.h"
#include "packet/headers.h"

namespace sluice::match {
namespace {

bool is_tcp(const PacketFacts& packet) {
  return packet.family != 0 && packet.protocol == packet::protocol_tcp;
}

bool admits_protocol(Protocol protocol, const PacketFacts& packet, const FlowFacts& flow) {
  switch (protocol) {
    case Protocol::ip:
      return packet.family != 0;
    case Protocol::ipv4:
      return packet.family == 4;
    case Protocol::ipv6:
      return packet.family == 6;
    case Protocol::tcp:
      return is_tcp(packet);
    case Protocol::tcp_pkt:
      return is_tcp(packet) && !flow.reassembled;
    case Protocol::tcp_stream:
      return is_tcp(packet) && flow.reassembled && !flow.beside_stream;
    case Protocol::udp:
      return packet.family != 0 && packet.protocol == packet::protocol_udp;
    case Protocol::icmp:
      return packet.family != 0 &&
             (packet.protocol == packet::protocol_icmp || packet.protocol == packet::protocol_icmpv6);
    case Protocol::icmpv4:
      return packet.family == 4 && packet.protocol == packet::protocol_icmp;
    case Protocol::icmpv6:
      return packet.family == 6 && packet.protocol == packet::protocol_icmpv6;
    case Protocol::sctp:
      return packet.family != 0 && packet.protocol == packet::protocol_sctp;
    default:
      return flow.known && flow.application == protocol;
  }
}

bool admits_ports(const Rule& rule, const PacketFacts& packet, std::uint16_t source, std::uint16_t destination) {
  if (rule.source.ports.is_any() && rule.destination.ports.is_any()) return true;
  return packet.has_ports && rule.source.ports.contains(source) && rule.destination.ports.contains(destination);
}

bool has_ip_option(std::string_view options, std::uint8_t type) {
  if (type == any_ip_option) return !options.empty();
  for (std::size_t at = 0; at < options.size();) {
    const auto here = static_cast<std::uint8_t>(options[at]);
    if (here == type) return true;
    if (here == 0) return false;
    const std::size_t length = here == 1 || at + 1 >= options.size() ? 1 : static_cast<std::uint8_t>(options[at + 1]);
    at += std::max<std::size_t>(length, 1);
  }
  return false;
}

bool compare(std::uint64_t bytes, StreamSizeCheck::Comparison how, std::uint64_t with) {
  switch (how) {
    case StreamSizeCheck::Comparison::less:
      return bytes < with;
    case StreamSizeCheck::Comparison::less_equal:
      return bytes <= with;
    case StreamSizeCheck::Comparison::equal:
      return bytes == with;
    case StreamSizeCheck::Comparison::not_equal:
      return bytes != with;
    case StreamSizeCheck::Comparison::greater_equal:
      return bytes >= with;
    case StreamSizeCheck::Comparison::greater:
      return bytes > with;
  }
  return false;
}

bool holds(const StreamSizeCheck& check, const FlowFacts& flow) {
  if (!flow.known) return false;
  const bool server = compare(flow.server_bytes, check.comparison, check.bytes);
  const bool client = compare(flow.client_bytes, check.comparison, check.bytes);
  switch (check.side) {
    case StreamSizeCheck::Side::server:
      return server;
    case StreamSizeCheck::Side::client:
      return client;
    case StreamSizeCheck::Side::both:
      return server && client;
    case StreamSizeCheck::Side::either:
      return server || client;
  }
  return false;
}

bool admits_flow(const FlowCheck& check, const PacketFacts& packet, const FlowFacts& flow) {
  if (check.direction != FlowDirection::any && (!flow.known || flow.direction != check.direction)) return false;
  switch (check.state) {
    case FlowState::any:
    case FlowState::stateless:
      break;
    case FlowState::established:
      if (!flow.known || !flow.established) return false;
      break;
    case FlowState::not_established:
      if (flow.known && flow.established) return false;
      break;
  }
  switch (check.data) {
    case FlowData::any:
      return true;
    case FlowData::only_stream:
      return flow.reassembled && !flow.beside_stream;
    case FlowData::no_stream:
      return !flow.reassembled;
    case FlowData::only_frag:
      return packet.fragment();
    case FlowData::no_frag:
      return !packet.fragment();
  }
  return true;
}

}  // namespace

bool holds(const NumberCheck& check, const PacketFacts& packet) {
  const auto value = packet.field(check.field);
  return value && (*value >= check.first && *value <= check.last) != check.negated;
}

bool holds(const BitCheck& check, const PacketFacts& packet) {
  const bool tcp = check.field == BitCheck::Field::tcp_flags;
  if (tcp ? !packet.has_tcp : packet.family == 0) return false;
  const auto value = static_cast<std::uint8_t>((tcp ? packet.tcp_flags : packet.fragment_bits) & ~check.ignored);
  switch (check.mode) {
    case BitMode::exactly:
      return value == check.bits;
    case BitMode::all:
      return (value & check.bits) == check.bits;
    case BitMode::any:
      return (value & check.bits) != 0;
    case BitMode::not_all:
      return (value & check.bits) != check.bits;
  }
  return false;
}

bool admits_ends(const Rule& rule, const PacketFacts& packet, bool swapped) {
  const auto& source = swapped ? packet.destination : packet.source;
  const auto& destination = swapped ? packet.source : packet.destination;
  return rule.source.addresses.contains(source) && rule.destination.addresses.contains(destination) &&
         admits_ports(rule, packet, swapped ? packet.destination_port : packet.source_port,
                      swapped ? packet.source_port : packet.destination_port);
}

bool admits_packet(const Rule& rule, const PacketFacts& packet) {
  if (!admits_ends(rule, packet, false) && !(rule.both_ways && admits_ends(rule, packet, true))) return false;
  const auto each = [&](const auto& checks) {
    return std::all_of(checks.begin(), checks.end(), [&](const auto& check) { return holds(check, packet); });
  };
  if (!each(rule.numbers) || !each(rule.bits)) return false;
  if (rule.same_ip && packet.source != packet.destination) return false;
  const auto option = [&](std::uint8_t type) { return has_ip_option(packet.ip_options, type); };
  return std::all_of(rule.ip_options.begin(), rule.ip_options.end(), option);
}

bool admits(const Rule& rule, const PacketFacts& packet, const FlowFacts& flow) {
  if ((flow.reassembled || flow.in_stream) && flow.reassembled == is_about_packets(rule)) return false;
  if (!admits_protocol(rule.protocol, packet, flow)) return false;
  if (!admits_flow(rule.flow, packet, flow) || !admits_packet(rule, packet)) return false;
  return std::all_of(rule.stream_sizes.begin(), rule.stream_sizes.end(),
                     [&](const StreamSizeCheck& check) { return is_tcp(packet) && holds(check, flow); });
}

}  // namespace sluice::match
