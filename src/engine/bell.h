// What one thread sleeps on and others ring. A ring costs a system call only when the thread sleeps.
//
//   sleeper:  bell.arm();  look for work once more;  none: bell.wait(...), else bell.disarm();
//   others:   make work visible;  bell.ring();
//
// Work that is made visible before ring() is seen by the look after arm(), or the ring ends the wait.
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
  // Until a ring, an event on one of `others` (their last element is scratch for the bell itself), or the time-out.
  // Disarms.
  void wait(std::span<pollfd> others_and_one, std::chrono::nanoseconds timeout);
  // For who waits by other means instead: readable once it was rung; -1: there is none. Then clear(), which disarms.
  int fd() const { return fd_; }
  void clear();

 private:
  void wake();
  int fd_;
  std::atomic<bool> armed_{false};
};

}  // namespace sluice::engine
