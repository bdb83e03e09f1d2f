// How much of a device jobs may take, so that frames keep their bound (bound.h). Of each cycle jobs have a slice. A
// launch of jobs is to take the device and its worker no longer than that, from the gathering of the first job to the
// return of the last. While the device has frames, the next launch begins a cycle after it began, or so much later that
// its excess is made up for.
//
// What a launch takes is learned by its size, in powers of two. After a size that takes half of the slice the next one
// is tried: twice as many jobs take twice as long at most. The least of late counts, for beside frames a launch waits
// for them, too; what is known rises by a sixteenth with a launch. Where a single job takes longer than the slice, a
// batch takes four times as long as that one at most. Such launches break a premise of the bound, and are counted
// (JobCounters::long_launches).
//
// Thread-safety: one thread, the device's worker. Cost: a loop over at most 16 numbers for each launch.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace sluice::engine {

class JobPace {
 public:
  // In ticks, neither 0. `most`: jobs of a batch.
  JobPace(std::uint64_t slice, std::uint64_t cycle, std::uint32_t most) : slice_(slice), cycle_(cycle), most_(most) {}

  // Jobs that a launch may have.
  std::uint32_t size() const {
    const std::uint64_t limit = took_[0] > slice_ ? 4 * took_[0] : slice_;
    unsigned k = 0;
    while (k + 1 < classes && took_[k] != 0 &&
           (took_[k] <= limit / 2 || (took_[k + 1] != 0 && took_[k + 1] <= limit))) {
      ++k;
    }
    return std::min(std::uint32_t{1} << k, most_);
  }

  // A launch of so many jobs is back. How long after its beginning the next one may begin.
  std::uint64_t took(std::uint32_t jobs, std::uint64_t ticks) {
    std::uint64_t& known = took_[std::min<unsigned>(static_cast<unsigned>(std::bit_width(jobs - 1)), classes - 1)];
    ticks = std::max<std::uint64_t>(ticks, 1);
    known = known == 0 ? ticks : std::min(ticks, known + known / 16 + 1);
    return known <= slice_ ? cycle_ : known / slice_ * cycle_ + known % slice_ * cycle_ / slice_;
  }
  bool is_long(std::uint64_t ticks) const { return ticks > slice_; }

 private:
  static constexpr unsigned classes = 16;

  std::uint64_t slice_, cycle_;
  std::uint32_t most_;
  std::array<std::uint64_t, classes> took_{};  // of launches of up to 2^k jobs; 0: not known
};

}  // namespace sluice::engine
