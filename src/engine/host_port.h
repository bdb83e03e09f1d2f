// The way of a frame to the host's kernel: one ring per port that lanes fill and the host thread drains into the port's
// TAP twin, and one back. A lane makes no system call but a wake-up when the host thread sleeps, and takes no lock, but
// it is not wait-free: lanes that punt at the same time publish their frames in turn, so that one spins while another
// was preempted in the midst of it (rte_ring, many producers). A full ring is an answer, not a wait.
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
  rte_ring* to_host = nullptr;    // many lanes in, the host thread out; null: the port has no twin
  rte_ring* from_host = nullptr;  // the host thread in, the port's first lane out
  Bell* host_bell = nullptr;
  Bell* lane_bell = nullptr;  // of the thread that sends what the host injects

  // Takes ownership of the frame, or answers why not. Exceptional frames (those that the kernel answers with an ICMP
  // error, if at all) get at most half of the ring, so that a flood of them cannot keep out ARP or a routing protocol.
  packet::Reason punt(rte_mbuf* frame, bool exceptional) const;
};

}  // namespace sluice::engine
