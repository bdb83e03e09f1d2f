// Whether a lane's load is low, so that it computes on its own core: a GPU pays when a cycle holds enough frames; below
// that the core is done before a GPU would have started.
//
// At a time point the lane compares the frames of the cycles since the last one that it saw. Enough of them are a high
// load. Few are a low load only if the first receive behind the time point takes all that waits in the queue: where
// more waits, the lane had not come to receive it (the machine did not run it, or every batch was in use), few frames
// say nothing, and the load counts as it did before.
//
// The factor of two between the two ways keeps a steady load from flapping. Thread-safety: the collector's thread.
// Cost: an addition per receive.
#pragma once

#include <cstdint>
#include <utility>

namespace sluice::engine {

class LoadWatch {
 public:
  // A low load becomes high with `cpu_below` frames per cycle, a high one low with fewer than half of them; 0: high
  // from the first time point on, for ever.
  explicit LoadWatch(std::uint32_t cpu_below) : cpu_below_(cpu_below) {}

  // `cycles` since the last time point that the lane saw: it may have slept through some, so frames are an average.
  void time_point(std::uint64_t cycles) {
    few_ = frames_ < cycles * (low_ ? cpu_below_ : cpu_below_ / 2);
    low_ = low_ && few_;
    frames_ = 0;
  }
  // After every receive that the lane had a batch for: how many frames it brought to compute, and whether it took all
  // that waited.
  void received(std::uint32_t frames, bool took_all) {
    frames_ += frames;
    low_ |= std::exchange(few_, false) && took_all;
  }
  // Before the first time point every load is low.
  bool low() const { return low_; }

 private:
  std::uint32_t cpu_below_;
  std::uint64_t frames_ = 0;  // since the last time point
  bool few_ = false;          // at the last time point, and nothing has been received since
  bool low_ = true;
};

}  // namespace sluice::engine
