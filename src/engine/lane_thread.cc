#include "engine/lane_thread.h"

#include <rte_lcore.h>
#include <rte_pause.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "engine/bound.h"
#include "engine/placement.h"

namespace sluice::engine {
namespace {
constexpr unsigned spins = 512;  // idle rounds before the first sleep
constexpr auto longest_wait = std::chrono::milliseconds(100);
}  // namespace

void LaneThread::start() {
  thread_ = std::thread([this] { run(); });
}

void LaneThread::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) {
    wake();
    thread_.join();
  }
}

unsigned LaneThread::round() {
  unsigned work = 0;
  std::uint64_t began = rte_rdtsc();
  const auto took = [&began] {
    const std::uint64_t now = rte_rdtsc();
    return now - std::exchange(began, now);
  };
  const auto collect = [&](Lane& lane) {
    stalls_.look(began);
    const unsigned moved = lane.collect_round();
    const std::uint64_t ticks = took();
    if (moved != 0) lane.spent_collecting(ticks);
    work += moved;
  };
  for (Lane* lane : collected_) collect(*lane);
  // A burst of each in turn, so that none waits for what another one has to catch up with.
  for (bool backlog = true; std::exchange(backlog, false);) {
    for (Lane* lane : collected_) {
      if (!lane->has_backlog()) continue;
      backlog = true;
      collect(*lane);
    }
  }
  for (Lane* lane : forwarded_) {
    stalls_.look(began);
    const unsigned moved = lane->forward_round();
    const std::uint64_t ticks = took();
    if (moved != 0) lane->spent_forwarding(ticks);
    work += moved;
  }
  return work;
}

bool LaneThread::holds_frames() const {
  return std::any_of(collected_.begin(), collected_.end(),
                     [](const Lane* lane) { return lane->collector_holds_frames(); }) ||
         std::any_of(forwarded_.begin(), forwarded_.end(),
                     [](const Lane* lane) { return lane->forwarder_holds_frames(); });
}

void LaneThread::run() {
  // Drivers and pools want to know the thread; a failure costs speed only (no per-thread caches).
  rte_thread_register();
  pin_this_thread(core_, "sluice-lane");
  schedule_this_thread(scheduling_);
  prctl(PR_SET_TIMERSLACK, 1000UL);
  for (const Lane* lane : collected_) {
    if (lane->wake() == Lane::Wake::descriptor) {
      const Lane::Parts& parts = lane->parts();
      descriptors_.push_back({parts.ports[parts.port]->wait_fd(parts.queue), POLLIN, 0});
    } else {
      must_look_ |= lane->wake() == Lane::Wake::look;
    }
  }
  descriptors_.push_back({});  // the bell's
  stalls_.resume(rte_rdtsc());
  unsigned idle = 0;
  std::chrono::nanoseconds timed = first_sleep;
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (round() != 0) {
      idle = 0;
      timed = first_sleep;
    } else if (busy_ || ++idle < spins) {
      rte_pause();
    } else {
      sleep(timed);
      stalls_.resume(rte_rdtsc());
    }
  }
  rte_thread_unregister();
}

// An interface that goes down leaves an error on its socket, which would end every wait at once. One that stays, as on
// the descriptor of a TAP that was deleted, is waited for no more.
void LaneThread::clear_errors() {
  for (pollfd& descriptor : std::span(descriptors_).first(descriptors_.size() - 1)) {
    if ((descriptor.revents & POLLERR) != 0) {
      int error = 0;
      socklen_t size = sizeof error;
      if (getsockopt(descriptor.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        descriptor.fd = -1;
        must_look_ = true;
      }
    }
  }
}

void LaneThread::sleep(std::chrono::nanoseconds& timed) {
  bell_.arm();
  if (round() != 0 || stopping_.load(std::memory_order_relaxed)) {
    bell_.disarm();
  } else if (holds_frames()) {
    bell_.wait({&descriptors_.back(), 1}, first_sleep);
  } else if (!must_look_) {
    bell_.wait(descriptors_, keeps_time_ ? longest_idle : longest_wait);
    clear_errors();
  } else {
    bell_.wait(descriptors_, timed);
    clear_errors();
    // By an eighth: a sleep, and so the delay that it can add, stays a small part of the silence before it.
    timed = std::min(timed + timed / 8, longest_sleep_);
  }
}

}  // namespace sluice::engine
