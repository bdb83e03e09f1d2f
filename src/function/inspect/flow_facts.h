// What an inspection knows of a flow: marks that it keeps in the flow's record, and facts that rules ask for.
//
// Thread-safety: of who inspects the flow. Cost: a few ns.
#pragma once

#include <cstdint>

#include "flow/flow.h"
#include "flow/packet.h"
#include "match/confirm/buffers.h"
#include "match/confirm/header_match.h"
#include "match/confirm/packet_facts.h"
#include "match/detect/header_gate.h"

namespace sluice::function {

// Bits of Flow::user, all of which are Inspection's.
struct FlowMark {
  static constexpr std::uint16_t http = 1;     // speaks HTTP
  static constexpr std::uint16_t dropped = 2;  // a rule that drops has held in it
  static constexpr std::uint16_t passed = 4;   // one of `pass` has
  // Rules about addresses alone have been tried with a packet to the server, and to the client; those whose generation
  // ends in the bits above.
  static constexpr std::uint16_t addresses_to_server = 8, addresses_to_client = 16;
  static constexpr unsigned generation_at = 5;
};

// Of a flow's packets in a direction, rules about addresses alone say the same. Whether those of the generation have
// been tried with one. Null: no flow.
bool are_addresses_tried(const flow::Flow* flow, flow::Direction direction, std::uint64_t generation);
void mark_addresses_tried(flow::Flow& flow, flow::Direction direction, std::uint64_t generation);

match::FlowFacts facts_of(const flow::Flow& flow, flow::Direction direction);
// Of bytes of a stream, or HTTP's, that `packet` brings.
match::FlowFacts stream_facts_of(const flow::Flow& flow, flow::Direction direction, const match::PacketFacts& packet);

inline match::PlainFacts plain_facts_of(const flow::Packet& packet) {
  match::PlainFacts facts;
  facts.protocol = packet.protocol;
  facts.tcp_flags = packet.tcp_flags;
  facts.family = packet.family;
  facts.source = packet.source.data();
  facts.destination = packet.destination.data();
  facts.source_port = packet.source_port;
  facts.destination_port = packet.destination_port;
  facts.payload = packet.payload.size();
  if (!packet.payload.empty()) facts.first_byte = static_cast<std::uint8_t>(packet.payload.front());
  return facts;
}

void set_headers(match::Buffers& buffers, const match::PacketFacts& packet);

}  // namespace sluice::function
