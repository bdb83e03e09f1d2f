#include "engine/flow_spread.h"

#include <rte_mbuf_dyn.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include <array>
#include <cstdio>
#include <utility>

#include "engine/burst.h"
#include "packet/flow_hash.h"
#include "packet/parse.h"

namespace sluice::engine {
namespace {

constexpr unsigned inbox_size = 2048;
constexpr unsigned most_lanes = 64;

// Of received_at_field; registered once, before lanes run.
int received_offset = -1;

int register_received() {
  rte_mbuf_dynfield field{};
  std::snprintf(field.name, sizeof field.name, "%s", received_at_field);
  field.size = sizeof(std::uint64_t);
  field.align = alignof(std::uint64_t);
  return rte_mbuf_dynfield_register(&field);
}

std::uint64_t& received_at(rte_mbuf* frame) {
  return *RTE_MBUF_DYNFIELD(frame, received_offset, std::uint64_t*);
}

std::uint32_t hash_of(rte_mbuf* frame) {
  const auto* data = rte_pktmbuf_mtod(frame, const std::uint8_t*);
  packet::FrameView view;
  // Malformed frames go to the owner's function, which names what is wrong with them.
  if (packet::parse_frame(data, rte_pktmbuf_data_len(frame), view) != packet::no_reason) {
    return 0;
  }
  return packet::flow_hash(data, rte_pktmbuf_data_len(frame), view);
}

}  // namespace

Expected<FlowInbox> FlowInbox::make(const std::string& name) {
  if (received_offset < 0 && (received_offset = register_received()) < 0) {
    return make_error("no space in DPDK's mbufs for the time of receive: give every port as many queues as lanes");
  }
  FlowInbox inbox;
  inbox.ring_ = rte_ring_create(name.c_str(), inbox_size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  if (inbox.ring_ == nullptr) {
    return make_error("no memory for the ring '" + name + "': raise [memory] size");
  }
  return inbox;
}

FlowInbox::FlowInbox(FlowInbox&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)) {}

FlowInbox& FlowInbox::operator=(FlowInbox&& other) noexcept {
  std::swap(ring_, other.ring_);
  return *this;
}

FlowInbox::~FlowInbox() {
  rte_ring_free(ring_);  // empty by now: Lane::abandon
}

unsigned FlowInbox::put(rte_mbuf** frames, unsigned count) {
  return rte_ring_sp_enqueue_burst(ring_, reinterpret_cast<void* const*>(frames), count, nullptr);
}

unsigned FlowInbox::take(rte_mbuf** frames, unsigned count, std::uint64_t& rx_tsc) {
  const unsigned taken = rte_ring_sc_dequeue_burst(ring_, reinterpret_cast<void**>(frames), count, nullptr);
  if (taken != 0) {
    rx_tsc = received_at(frames[0]);
  }
  return taken;
}

bool FlowInbox::empty() const {
  return rte_ring_empty(ring_) != 0;
}

unsigned FlowSpread::spread(rte_mbuf** frames, unsigned count, std::uint64_t rx_tsc, LaneCounters& counters) {
  for (unsigned i = 0; i < count; ++i) {
    rte_prefetch0(rte_pktmbuf_mtod(frames[i], void*));
  }
  std::array<std::array<rte_mbuf*, burst_size>, most_lanes> share;
  std::array<unsigned, most_lanes> size{};
  const auto lanes = static_cast<std::uint32_t>(siblings_.size());
  unsigned kept = 0;
  for (unsigned i = 0; i < count; ++i) {
    // The high bits: equal-cost next hops are chosen by the low ones.
    const auto lane = static_cast<std::uint32_t>(std::uint64_t{hash_of(frames[i])} * lanes >> 32);
    if (lane == 0) {
      frames[kept++] = frames[i];
    } else {
      received_at(frames[i]) = rx_tsc;
      share[lane][size[lane]++] = frames[i];
    }
  }
  for (std::uint32_t lane = 1; lane < lanes; ++lane) {
    if (size[lane] == 0) {
      continue;
    }
    const unsigned taken = siblings_[lane].inbox->put(share[lane].data(), size[lane]);
    siblings_[lane].bell->ring();
    if (const unsigned left = size[lane] - taken; left != 0) {
      std::uint64_t bytes = 0;
      for (unsigned i = taken; i < size[lane]; ++i) {
        bytes += rte_pktmbuf_pkt_len(share[lane][i]);
        if (tap_ != nullptr && tap_->on()) [[unlikely]]
          tap_->dropped(lane_, port_, share[lane][i], lane_full);
      }
      counters.rx_frames.add(left);
      counters.rx_bytes.add(bytes);
      counters.drops[lane_full].add(left);
      rte_pktmbuf_free_bulk(share[lane].data() + taken, left);
    }
  }
  return kept;
}

}  // namespace sluice::engine
