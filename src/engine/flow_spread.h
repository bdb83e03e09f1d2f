// Spreads what one receive queue delivers over several lanes, for ports with fewer queues than lanes: a symmetric flow
// hash (packet/flow_hash.h) chooses the lane, so that both directions of a flow stay together and in order.
//
// The lane that owns the queue keeps its share and passes the rest on through one ring per sibling; a sibling receives
// from its ring as from a queue. The moment of receive travels in a field of its own in the mbuf, so that waiting in a
// ring counts against the deadline. Cost for the owner: about 10 ns per frame.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "engine/bell.h"
#include "engine/counters.h"
#include "engine/frame_tap.h"
#include "packet/reason.h"

struct rte_ring;

namespace sluice::engine {

inline const packet::Reason lane_full =
    packet::register_reason("lane_full", "the lane of the flow did not take frames fast enough");

// Of DPDK's mbufs: the moment of receive, a time-stamp counter's value. The timestamp field is the drivers': frames of
// a capture have their time there.
inline constexpr const char* received_at_field = "sluice_received_at";

// The ring into a lane that owns no queue: one producer, the owner; one consumer, the lane.
class FlowInbox {
 public:
  static Expected<FlowInbox> make(const std::string& name);
  FlowInbox() = default;
  ~FlowInbox();
  FlowInbox(FlowInbox&& other) noexcept;
  FlowInbox& operator=(FlowInbox&& other) noexcept;

  explicit operator bool() const { return ring_ != nullptr; }
  unsigned put(rte_mbuf** frames, unsigned count);
  // The frames' moment of receive is that of the first one.
  unsigned take(rte_mbuf** frames, unsigned count, std::uint64_t& rx_tsc);
  bool empty() const;

 private:
  rte_ring* ring_ = nullptr;
};

class FlowSpread {
 public:
  struct Sibling {
    FlowInbox* inbox = nullptr;
    Bell* bell = nullptr;
  };
  // Slot 0 is the owner's own share.
  explicit FlowSpread(std::vector<Sibling> siblings) : siblings_(std::move(siblings)) {}
  // Leaves the owner's frames at the front of `frames`, in their order, and returns how many. What a sibling does not
  // take is counted as received and dropped (lane_full) and freed.
  unsigned spread(rte_mbuf** frames, unsigned count, std::uint64_t rx_tsc, LaneCounters& counters);
  // Whom frames are shown that are dropped here, as of this lane and port.
  void show_drops_to(FrameTap* tap, std::uint32_t lane, std::uint16_t port) {
    tap_ = tap;
    lane_ = lane;
    port_ = port;
  }

 private:
  FrameTap* tap_ = nullptr;
  std::uint32_t lane_ = 0;
  std::uint16_t port_ = 0;
  std::vector<Sibling> siblings_;
};

}  // namespace sluice::engine
