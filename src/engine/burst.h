// What a receive burst returned, as a function's collect() sees it: for each frame exactly one of BatchWriter::append,
// drop or punt. The header bytes of the frames have been prefetched.
#pragma once

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <cstdint>

#include "engine/counters.h"
#include "engine/frame_tap.h"
#include "engine/host_port.h"

namespace sluice::engine {

inline constexpr unsigned burst_size = 64;

class Burst {
 public:
  // `tap`: of the engine, with what number the lane has there; null: nobody ever looks.
  Burst(LaneCounters& counters, const HostPort* host_ports, FrameTap* tap = nullptr, std::uint32_t lane = 0)
      : counters_(counters), host_ports_(host_ports), tap_(tap), lane_(lane) {}

  unsigned size() const { return size_; }
  std::uint16_t port() const { return port_; }
  std::uint8_t* data(unsigned i) const { return rte_pktmbuf_mtod(frames_[i], std::uint8_t*); }
  std::uint32_t length(unsigned i) const { return rte_pktmbuf_data_len(frames_[i]); }
  rte_mbuf* frame(unsigned i) const { return frames_[i]; }

  void drop(unsigned i, packet::Reason reason) {
    counters_.drops[reason].add(1);
    if (tapped_) [[unlikely]]
      tap_->dropped(lane_, port_, frames_[i], reason);
    dropped_[dropped_count_++] = frames_[i];
  }

  // To the kernel through the port's twin. When that is not possible: a drop for `otherwise`, or for what stands in the
  // way. `exceptional`: a frame that is not the host's own traffic: the kernel answers it with an error, or forwards
  // it. Such frames never take the last of the way, and a guard may object.
  void punt(unsigned i, bool exceptional = false, packet::Reason otherwise = packet::no_reason) {
    if (exceptional && guard_ != nullptr) {
      const std::uint64_t began = rte_rdtsc();
      const packet::Reason reason = guard_->judge(data(i), length(i));
      guarded_ticks_ += rte_rdtsc() - began;
      if (reason != packet::no_reason) {
        drop(i, reason);
        return;
      }
    }
    FrameTap::Claim claim{};
    if (tapped_) [[unlikely]]
      claim = tap_->claim(frames_[i]);
    const packet::Reason reason = host_ports_[port_].punt(frames_[i], exceptional);
    if (tapped_) [[unlikely]]
      tap_->punted(claim, frames_[i], reason == packet::no_reason);
    if (reason != packet::no_reason) {
      drop(i, otherwise != packet::no_reason ? otherwise : reason);
    } else {
      counters_.punted_frames.add(1);
    }
  }

  // For what wraps a function: asked about each exceptional punt, until it is taken away (null). A reason drops it.
  class Guard {
   public:
    virtual packet::Reason judge(std::uint8_t* frame, std::uint32_t length) = 0;

   protected:
    ~Guard() = default;
  };
  void set_guard(Guard* guard) { guard_ = guard; }

  // The lane's side.
  rte_mbuf** frames() { return frames_; }
  void begin(unsigned size, std::uint16_t port) {
    size_ = size;
    port_ = port;
    dropped_count_ = 0;
    guarded_ticks_ = 0;
    tapped_ = tap_ != nullptr && tap_->on();
  }
  // That the guard has taken since.
  std::uint64_t guarded_ticks() const { return guarded_ticks_; }
  void end() {
    if (dropped_count_ != 0) {
      rte_pktmbuf_free_bulk(dropped_, dropped_count_);
    }
  }

 private:
  LaneCounters& counters_;
  const HostPort* host_ports_;
  FrameTap* const tap_;
  const std::uint32_t lane_;
  bool tapped_ = false;  // somebody looks, as of begin()
  Guard* guard_ = nullptr;
  unsigned size_ = 0;
  unsigned dropped_count_ = 0;
  std::uint64_t guarded_ticks_ = 0;
  std::uint16_t port_ = 0;
  rte_mbuf* frames_[burst_size];
  rte_mbuf* dropped_[burst_size];
};

}  // namespace sluice::engine
