// The way of a frame to the host's kernel. Each port has a ring that lanes fill and the host thread drains into the
// port's TAP twin, and a ring for the way back.
//
// A lane takes no lock, and makes a system call only to wake a sleeping host thread. It is not wait-free: lanes that
// punt at the same time publish their frames in turn (rte_ring, many producers), so a lane spins while another one is
// preempted in the midst of it. If the ring is full the call fails at once.
#pragma once

#include <cstdint>

#include "engine/bell.h"
#include "packet/reason.h"

struct rte_mbuf;
struct rte_ring;

namespace sluice::engine {

inline const packet::Reason no_twin =
    packet::register_reason("no_twin", "traffic for the host on a port that has no TAP twin");
inline const packet::Reason punt_full =
    packet::register_reason("punt_full", "the host did not take punted frames fast enough");

struct HostPort {
  rte_ring* to_host = nullptr;    // filled by all lanes, drained by the host thread; null: the port has no twin
  rte_ring* from_host = nullptr;  // filled by the host thread, drained by the port's first lane
  Bell* host_bell = nullptr;
  Bell* lane_bell = nullptr;  // of the thread that sends what the host injects

  // no_reason: the call has taken the frame over; else why it has not. Exceptional frames are those that the kernel is
  // to forward, or to answer with an ICMP error. They get at most half of the ring, so that a flood of them cannot keep
  // out ARP or a routing protocol.
  packet::Reason punt(rte_mbuf* frame, bool exceptional) const;
};

}  // namespace sluice::engine
