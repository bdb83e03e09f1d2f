// Helpers: threads on cores of their own ([engine] compute_cores) that do a part of the jobs which lanes compute
// (compute_share.h), so that a flow, which is one lane's, is not bound to what one core computes.
//
// All helpers are for all threads of lanes, and look at each in turn. So one lane that has much to compute has all of
// them, whichever it is; dealt to lanes they would be idle beside the others. What that costs is a look at a cache line
// of each thread, by helpers that have nothing else to do.
//
// A helper that finds nothing spins, and where polling is adaptive sleeps after some 0.2 ms. A fork wakes one helper
// that sleeps, by a system call, and does not wait for it.
//
// Thread-safety: add_share(), start() and stop() the control thread; counters any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "engine/bell.h"
#include "engine/compute_share.h"
#include "engine/counters.h"
#include "engine/inline_pace.h"
#include "engine/options.h"
#include "engine/stall.h"

namespace sluice::engine {

// One thread.
class ComputeHelper {
 public:
  // `thread`: as of Divisible::compute_jobs().
  ComputeHelper(ComputeHelpers& all, std::uint32_t thread, int core) : all_(all), thread_(thread), core_(core) {}
  ~ComputeHelper() { stop(); }

  void start();
  void stop();
  bool sleeps() const { return sleeps_.load(std::memory_order_relaxed); }
  void wake() { bell_.ring(); }

  // What is there for it: all of it. False: nothing was.
  bool round();

  int core() const { return core_; }
  const Counter& spans() const { return spans_; }
  const Counter& jobs() const { return jobs_; }
  const Counter& busy() const { return busy_; }  // ticks
  // While it had a span that a lane waits for.
  const StallWatch& stalls() const { return stalls_; }

 private:
  void run();
  void sleep();
  bool help(ComputeShare& share);

  ComputeHelpers& all_;
  const std::uint32_t thread_;
  const int core_;
  std::size_t first_ = 0;  // share that it looks at first
  FrameCost cost_;         // of a job
  Counter spans_, jobs_, busy_;
  StallWatch stalls_;
  Bell bell_;
  std::atomic<bool> sleeps_{false}, stopping_{false};
  std::thread running_;
};

class ComputeHelpers {
 public:
  ComputeHelpers(const std::vector<int>& cores, bool busy, Scheduling scheduling);
  ~ComputeHelpers() { stop(); }
  ComputeHelpers(const ComputeHelpers&) = delete;
  ComputeHelpers& operator=(const ComputeHelpers&) = delete;

  // For one more thread of lanes; before start(). It lives as long as this.
  ComputeShare* add_share();
  void start();
  // Once no lane runs.
  void stop();

  std::uint32_t count() const { return static_cast<std::uint32_t>(helpers_.size()); }
  const std::vector<std::unique_ptr<ComputeHelper>>& helpers() const { return helpers_; }

  // The lanes' side, once a fork is published.
  void wake_one() {
    // Pairs with the fence of a helper that is about to sleep: either this load sees it, or it sees the fork.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ring_one();
  }

 private:
  friend class ComputeHelper;
  void ring_one();

  const bool busy_;
  const Scheduling scheduling_;
  std::vector<std::unique_ptr<ComputeShare>> shares_;
  std::vector<std::unique_ptr<ComputeHelper>> helpers_;
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
};

}  // namespace sluice::engine
