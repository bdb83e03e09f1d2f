// Admission at the deadline: a frame that cannot leave in time any more is refused before it costs anything, and is
// counted as `overdue`; so the frames behind it are on time. Without this a lane that has fallen behind (the device
// carries less than what comes in, or the machine kept a thread from running) sends everything late from then on.
//
// A frame that has waited `age` when it is collected needs up to a cycle until its batch is sealed, and then what the
// lane's last batch took from there until it had left. It is refused when that adds up to more than eight tenths of the
// deadline: the next batch may take longer than the last one. A cycle and the last batch count for seven tenths at
// most, so that fresh frames are let in whatever the last batch met.
//
// This keeps frames on time as long as the batches of all lanes together hold less than seven tenths of a deadline's
// work; the rest then waits where it is judged, in the receive queue. A port that does not say when frames arrived
// (port.h, waited()) delivers them with an age of 0, and none of them is refused.
//
// Thread-safety: took() from the forwarder's thread, in_time() from the collector's. Cost: a comparison per burst.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sluice::engine {

class Admission {
 public:
  // In ticks. Lets everything in when it is made without a deadline.
  Admission() = default;
  Admission(std::uint64_t deadline, std::uint64_t cycle)
      : cycle_(cycle), budget_(deadline / 10 * 8), most_(deadline / 10 * 7) {}

  // The lane's last batch left this long after it was sealed.
  void took(std::uint64_t ticks) { took_.store(ticks, std::memory_order_relaxed); }
  // Whether a frame of this age can leave in time; `in_cycles`: its batch will wait for a time point.
  bool in_time(std::uint64_t age, bool in_cycles) const {
    return age + std::min(took_.load(std::memory_order_relaxed) + (in_cycles ? cycle_ : 0), most_) <= budget_;
  }

 private:
  std::uint64_t cycle_ = 0;
  std::uint64_t budget_ = UINT64_MAX, most_ = 0;
  std::atomic<std::uint64_t> took_{0};
};

}  // namespace sluice::engine
