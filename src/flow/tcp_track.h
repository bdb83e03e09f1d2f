// What a TCP packet does to its flow: the state machine behind FlowTable::track(), without the table.
//
// Thread-safety: none, one lane.
#pragma once

#include <optional>

#include "flow/flow.h"
#include "flow/flow_table.h"
#include "flow/packet.h"

namespace sluice::flow {

// Comparisons modulo 2^32 (RFC 9293 section 3.4).
constexpr bool sequence_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}
constexpr bool sequence_after(std::uint32_t a, std::uint32_t b) {
  return sequence_before(b, a);
}

// The flow's fields are brought up to date, but for its state: `next` is what that becomes. `expected`: as
// FlowTable::track() takes it.
TcpCheck track_tcp(Flow& flow, Direction direction, const Packet& packet, bool midstream,
                   std::optional<std::uint32_t> expected, FlowState& next);

// Whether this SYN begins another conversation: the one before is over, or was never one, since its own SYN was not
// seen (an unmatched segment before the SYN must not decide what the flow is).
bool begins_anew(const Flow& flow, Direction direction, const Packet& packet);

// Whether this SYN-ACK answers a later SYN of an established or silent conversation: the server has forgotten it, and
// another one has begun.
bool answers_new_syn(const Flow& flow, Direction direction, const Packet& packet);

// The SYN that this SYN-ACK answers, as far as it says.
Packet syn_of_answer(const Packet& answer);

// Of the first packet of a flow: sets what the client's and server's SYN would have set.
void begin_tcp(Flow& flow, Direction direction, const Packet& packet, bool midstream);

// Which way the first packet of a TCP flow goes (flow.h: who the client is).
Direction first_direction(const Packet& packet);

}  // namespace sluice::flow
