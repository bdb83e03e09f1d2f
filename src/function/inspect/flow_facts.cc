#include "function/inspect/flow_facts.h"

#include "flow/tcp_track.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using flow::Direction;
using match::Buffer;

constexpr std::uint16_t addresses_in(Direction direction) {
  return direction == Direction::to_server ? FlowMark::addresses_to_server : FlowMark::addresses_to_client;
}

constexpr std::uint16_t mark_of(std::uint64_t generation) {
  return static_cast<std::uint16_t>(generation) & (0xffffU >> FlowMark::generation_at);
}

}  // namespace

bool are_addresses_tried(const flow::Flow* flow, Direction direction, std::uint64_t generation) {
  return flow != nullptr && flow->user >> FlowMark::generation_at == mark_of(generation) &&
         (flow->user & addresses_in(direction)) != 0;
}

void mark_addresses_tried(flow::Flow& flow, Direction direction, std::uint64_t generation) {
  constexpr std::uint16_t tried = FlowMark::addresses_to_server | FlowMark::addresses_to_client;
  constexpr std::uint16_t others = (1U << FlowMark::generation_at) - 1;
  if (flow.user >> FlowMark::generation_at != mark_of(generation)) {
    flow.user =
        static_cast<std::uint16_t>((flow.user & others & ~tried) | mark_of(generation) << FlowMark::generation_at);
  }
  flow.user |= addresses_in(direction);
}

match::FlowFacts facts_of(const flow::Flow& flow, Direction direction) {
  match::FlowFacts facts;
  facts.known = true;
  facts.direction =
      direction == Direction::to_server ? match::FlowDirection::to_server : match::FlowDirection::to_client;
  // Closed by FINs, it was established; one of them may have been a decoy, and its side go on. Silent, it may be
  // established at its hosts.
  const bool by_fins = flow.has(flow::FlowFlag::fin_client) && flow.has(flow::FlowFlag::fin_server);
  facts.established =
      flow.established() || flow.state == flow::FlowState::silent || (flow.state == flow::FlowState::closed && by_fins);
  facts.application = (flow.user & FlowMark::http) != 0 ? match::Protocol::http : match::Protocol::ip;
  const auto sent = [&](std::size_t side) -> std::uint64_t {
    const bool heard = flow.has(side == 0 ? flow::FlowFlag::heard_client : flow::FlowFlag::heard_server);
    return heard ? flow.end[side] - flow.initial[side] - 1 : 0;
  };
  if (flow.protocol == packet::protocol_tcp) {
    facts.client_bytes = sent(0);
    facts.server_bytes = sent(1);
  }
  return facts;
}

// A SYN's bytes with Fast Open (RFC 7413) are of a conversation that its cookie says was there before. A server hands
// them on at once, and answers before its SYN-ACK is acknowledged.
match::FlowFacts stream_facts_of(const flow::Flow& flow, Direction direction, const match::PacketFacts& packet) {
  match::FlowFacts facts = facts_of(flow, direction);
  facts.reassembled = true;
  if (facts.established || flow.protocol != packet::protocol_tcp) return facts;
  if (flow.state == flow::FlowState::fresh) {
    facts.established = (packet.tcp_flags & (flow::tcp_syn | flow::tcp_ack)) == flow::tcp_syn &&
                        !packet.payload.empty() && flow::has_fast_open(packet.transport_header);
  } else if (flow.state == flow::FlowState::half_open) {
    facts.established = flow::sequence_after(flow.acked[0], flow.initial[0] + 1);
  }
  return facts;
}

void set_headers(match::Buffers& buffers, const match::PacketFacts& packet) {
  if (packet.family == 4) buffers.set(Buffer::ipv4_header, packet.ip_header);
  if (packet.family == 6) buffers.set(Buffer::ipv6_header, packet.ip_header);
  if (packet.has_tcp) buffers.set(Buffer::tcp_header, packet.transport_header);
  if (packet.has_ports && packet.protocol == packet::protocol_udp) {
    buffers.set(Buffer::udp_header, packet.transport_header);
  }
  if (packet.has_icmp) {
    buffers.set(packet.family == 4 ? Buffer::icmpv4_header : Buffer::icmpv6_header, packet.transport_header);
  }
}

}  // namespace sluice::function
