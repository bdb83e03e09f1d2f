// A queue of fixed size between any threads, without a lock: Vyukov's bounded queue, in which each cell has a number
// that says whose turn it is. A thread that is preempted in the midst of push() or pop() blocks no other thread. But
// values behind its cell become visible only when it goes on.
//
// Thread-safety: any threads push and pop. Cost: one atomic exchange and a cache line each; only the constructor
// allocates.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sluice {

template <class T>
class BoundedQueue {
 public:
  // Holds `capacity` at least.
  explicit BoundedQueue(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2 : capacity) - 1), cells_(std::make_unique<Cell[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  // False: it is full.
  bool push(T value) {
    std::uint64_t at = pushed_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (!pushed_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        cell.value = value;
        cell.turn.store(at + 1, std::memory_order_release);
        return true;
      }
      if (turn < at) return false;
      at = pushed_.load(std::memory_order_relaxed);
    }
  }

  // False: it is empty, or what is next is still being pushed.
  bool pop(T& value) {
    std::uint64_t at = popped_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at + 1) {
        if (!popped_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        value = cell.value;
        cell.turn.store(at + mask_ + 1, std::memory_order_release);
        return true;
      }
      if (turn < at + 1) return false;
      at = popped_.load(std::memory_order_relaxed);
    }
  }

  // Nothing to pop, as far as this thread sees.
  bool empty() const {
    const std::uint64_t at = popped_.load(std::memory_order_relaxed);
    return cells_[at & mask_].turn.load(std::memory_order_acquire) < at + 1;
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> turn{0};
    T value{};
  };

  const std::size_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> popped_{0};
};

}  // namespace sluice
