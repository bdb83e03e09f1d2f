// One thread sleeps on a bell, others ring it. A ring costs a system call only while the thread sleeps.
//
//   sleeper:  bell.arm();  look for work once more;  none: bell.wait(...), else bell.disarm();
//   others:   make work visible;  bell.ring();
//
// No work is missed: work that is made visible before ring() is found by the look after arm(), or the ring ends the
// wait.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <span>

namespace sluice::engine {

class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // Any thread; wait-free while the sleeper is awake.
  void ring() {
    // Pairs with the fence in arm(): either this load sees the sleeper armed, or its look sees the caller's work.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (armed_.load(std::memory_order_relaxed)) {
      wake();
    }
  }

  // The sleeping thread.
  void arm() {
    armed_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void disarm() { armed_.store(false, std::memory_order_relaxed); }
  // Waits for a ring, for an event on one of the descriptors, or for the time-out; then disarms. The last element of
  // the span is scratch for the bell itself.
  void wait(std::span<pollfd> others_and_one, std::chrono::nanoseconds timeout);
  // A descriptor for another way of waiting (epoll): readable once the bell was rung; -1: there is none. After the wait
  // call clear(), which disarms.
  int fd() const { return fd_; }
  void clear();

 private:
  void wake();
  int fd_;
  std::atomic<bool> armed_{false};
};

}  // namespace sluice::engine
