// Whether the header of a rule, its checks of header fields and of the flow admit a packet: all that is not about bytes
// of the payload.
//
// Thread-safety: any thread. Cost: some 10 to 50 ns.
#pragma once

#include <cstdint>

#include "match/confirm/packet_facts.h"
#include "match/rules/rule.h"

namespace sluice::match {

// What is known of the flow of a packet.
struct FlowFacts {
  bool known = false;  // the packet belongs to a flow
  FlowDirection direction = FlowDirection::any;
  bool established = false;
  bool reassembled = false;  // what is inspected is a stream's bytes: rules about packets (rule_scope.h) are not for it
  bool beside_stream = false;  // with `reassembled`: bytes that the stream did not take; rules of streams alone
                               // (tcp-stream, flow:only_stream) are not for them
  bool in_stream = false;      // what is inspected is a packet, whose payload is inspected as part of a stream: only
                               // rules about packets are for it
  Protocol application = Protocol::ip;               // that was recognised; ip: none
  std::uint64_t client_bytes = 0, server_bytes = 0;  // of the stream so far
};

bool holds(const NumberCheck& check, const PacketFacts& packet);
bool holds(const BitCheck& check, const PacketFacts& packet);
// `swapped`: with source and destination exchanged, for rules that hold both ways (admits() tries both).
bool admits_ends(const Rule& rule, const PacketFacts& packet, bool swapped);
// What of that is the packet's alone.
bool admits_packet(const Rule& rule, const PacketFacts& packet);
bool admits(const Rule& rule, const PacketFacts& packet, const FlowFacts& flow);

}  // namespace sluice::match
