// How far a device's worker has come, and whether the device is there: written by the worker and, where the worker
// itself hangs, by the lanes.
//
// A device goes in two steps: device_up falls, and no lane gives it any more. Then, if it does not answer for what it
// has, `takes_back` rises: each lane takes its batches back (docs/device-failure.md). begin_again() takes both steps
// back, when no lane has anything there and the worker has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "engine/bell.h"
#include "engine/counters.h"
#include "engine/stall.h"

namespace sluice::engine {

enum class Loss : std::uint8_t {
  none,
  failed,  // it has answered with an error
  silent,  // it has not answered
  hung,    // a call of its driver has not returned
};

// Why a device is lost: the first report stays, until forget(). Any thread; report() without a text allocates nothing
// and takes no lock.
class LossReport {
 public:
  // Whether it is the first.
  bool report(Loss how, std::string why = {}) {
    if (claimed_.exchange(true)) return false;
    if (!why.empty()) {
      const std::lock_guard lock(mutex_);
      why_ = std::move(why);
    }
    since_.store(std::chrono::system_clock::now());
    how_.store(how, std::memory_order_release);
    return true;
  }
  // The device is a new one. Control thread, while nobody reports.
  void forget() {
    how_.store(Loss::none);
    logged_.store(false);
    claimed_.store(false);
  }
  // True once: who asks first writes the log's line.
  bool is_to_be_logged() { return how() != Loss::none && !logged_.exchange(true); }
  Loss how() const { return how_.load(std::memory_order_acquire); }
  std::string why() const {
    switch (how()) {
      case Loss::none:
        return {};
      case Loss::hung:
        return "a call of its driver does not return";
      default: {
        const std::lock_guard lock(mutex_);
        return why_;
      }
    }
  }
  std::chrono::system_clock::time_point since() const {
    return how() == Loss::none ? std::chrono::system_clock::time_point() : since_.load();
  }

 private:
  std::atomic<bool> claimed_{false}, logged_{false};
  std::atomic<Loss> how_{Loss::none};
  mutable std::mutex mutex_;
  std::string why_;
  std::atomic<std::chrono::system_clock::time_point> since_{};
};

struct alignas(64) Clock {
  std::atomic<bool> device_up{false};   // a GPU takes batches
  std::atomic<bool> takes_back{false};  // it does not answer for what it has
  std::atomic<bool> ended_up{false};    // it still did when its worker stopped: nothing ails it
  std::atomic<bool> pauses{false};      // its worker does not run for a while: lanes take back what they have sealed
  // How long the worker may not look at its clock while it has batches, in ticks; 0: for ever.
  std::atomic<std::uint64_t> longest_call{0};
  LossReport loss;
  std::atomic<std::uint32_t> resets{0};  // times that the device came back
  std::atomic<std::uint32_t> lanes{0};   // that it serves
  // Of its batches: buffers of frames that it may still write to now, and, in ticks, the longest that one waited from
  // its sealing until a core had computed it.
  std::atomic<std::uint64_t> frames_aside{0}, longest_rescue{0};
  StallWatch stalls;               // of the worker's thread
  Bell bell;                       // the worker's
  alignas(64) Counter looked_tsc;  // when the worker last looked at its clock

  void begin_again() {
    takes_back.store(false);
    ended_up.store(false);
    loss.forget();
    resets.fetch_add(1);
  }
};

}  // namespace sluice::engine
