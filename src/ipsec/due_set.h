// Objects that lanes have noted for the control thread to look at: a bit for each. None is lost, and none is there
// twice.
//
// Thread-safety: any threads note(); one takes. Cost: note() a locked instruction; take() a load for 64 objects.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::ipsec {

class DueSet {
 public:
  explicit DueSet(std::size_t objects) : words_((objects + 63) / 64) {}

  void note(std::uint32_t object) {
    // Though the bit may be there: what the caller wrote before must be seen by who takes it.
    words_[object / 64].fetch_or(std::uint64_t{1} << object % 64, std::memory_order_release);
  }

  // Calls act(object) for each, and forgets it before.
  template <class Act>
  void take(const Act& act) {
    for (std::size_t at = 0; at < words_.size(); ++at) {
      if (words_[at].load(std::memory_order_relaxed) == 0) continue;
      for (std::uint64_t left = words_[at].exchange(0, std::memory_order_acquire); left != 0; left &= left - 1) {
        act(static_cast<std::uint32_t>(at * 64 + static_cast<std::size_t>(std::countr_zero(left))));
      }
    }
  }

 private:
  std::vector<std::atomic<std::uint64_t>> words_;
};

}  // namespace sluice::ipsec
