// Frames that go into a tunnel: the outer headers for one remote, or a copy for each of several, and what is counted of
// that. A frame is counted once it leaves: a copy for which there is no buffer is lost, and nothing else.
//
// Thread-safety: a TunnelOut and an emitter are one thread's. Cost: the headers, with UDP checksums a pass over the
// frame; a copy of the frame for each remote but one.
#pragma once

#include <cstdint>
#include <span>

#include "engine/counters.h"
#include "engine/emitter.h"
#include "function/vxlan/vxlan_view.h"
#include "packet/reason.h"

struct rte_mbuf;

namespace sluice::function {

inline const packet::Reason vxlan_unresolved =
    packet::register_reason("vxlan_unresolved", "no route to the tunnel's other end, or nobody answers: see the log");
inline const packet::Reason vxlan_too_long = packet::register_reason(
    "vxlan_too_long", "with its outer headers larger than the next link's MTU, or than its buffer");
inline const packet::Reason vxlan_no_remote =
    packet::register_reason("vxlan_no_remote", "for an unknown station or a group, of a tunnel without `remotes`");

struct TunnelOut {
  // Frames and bytes are inner ones. `copies_lost`: of flooded frames of which another remote got one.
  engine::Counter frames, bytes, flooded, copies_lost;
  std::uint16_t ip_id = 0;
};

// Why the frame cannot go to the remote; no_reason: it can.
packet::Reason why_not(const Remote& remote, const rte_mbuf& frame);

// The frame, which is in one piece and can go there, leaves for the remote.
void send_into_tunnel(const Remote& remote, rte_mbuf* frame, TunnelOut& state, engine::Emitter& out);

// It leaves for each remote that it can go to: no_reason. Else it is the caller's still, and goes nowhere for the
// reason, one remote's; where that is vxlan_too_long `least` bytes would do for one of them.
struct Flooded {
  packet::Reason reason = packet::no_reason;
  std::uint32_t least = 0;
};
Flooded flood_into_tunnel(std::span<const Remote> remotes, rte_mbuf* frame, TunnelOut& state, engine::Emitter& out);

}  // namespace sluice::function
