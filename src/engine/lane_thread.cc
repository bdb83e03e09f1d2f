#include "engine/lane_thread.h"

#include <rte_lcore.h>
#include <rte_pause.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "engine/placement.h"

namespace sluice::engine {
namespace {
constexpr unsigned spins = 512;  // idle rounds before the first sleep
constexpr long first_sleep_ns = 10'000;
constexpr long longest_sleep_ns = 1'000'000;  // an idle core wakes 1,000 times a second: about 1.5 % of it
}  // namespace

void LaneThread::start() {
  thread_ = std::thread([this] { run(); });
}

void LaneThread::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) {
    thread_.join();
  }
}

void LaneThread::run() {
  // Drivers and pools want to know the thread; a failure costs speed only (no per-thread caches).
  rte_thread_register();
  pin_this_thread(core_, "sluice-lane");
  prctl(PR_SET_TIMERSLACK, 1000UL);
  unsigned idle = 0;
  long sleep_ns = first_sleep_ns;
  while (!stopping_.load(std::memory_order_relaxed)) {
    unsigned work = 0;
    for (Lane* lane : lanes_) {
      work += lane->poll();
    }
    if (work != 0) {
      idle = 0;
      sleep_ns = first_sleep_ns;
    } else if (busy_ || ++idle < spins) {
      rte_pause();
    } else {
      // Frames that wait for a time point or a device must not wait for this thread to wake up.
      const bool holds =
          std::any_of(lanes_.begin(), lanes_.end(), [](const Lane* lane) { return lane->holds_frames(); });
      const timespec time{0, holds ? first_sleep_ns : sleep_ns};
      nanosleep(&time, nullptr);
      // By an eighth: a sleep, and so the delay that it can add, stays a small part of the silence before it.
      sleep_ns = std::min(sleep_ns + sleep_ns / 8, longest_sleep_ns);
    }
  }
  rte_thread_unregister();
}

}  // namespace sluice::engine
