// The time of a capture's frames, as far as it can be believed. One frame alone that lies a day or more ahead of all
// before it is taken for a mistake of whoever wrote the capture. It counts as of the last one's time. Two in a row are
// believed. Why: time does not go back again, so nothing would time out until the capture comes there.
//
// Thread-safety: none, one lane. Cost: two comparisons a frame.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::function {

class CaptureTime {
 public:
  // Of a frame with this time stamp; both in microseconds.
  std::uint64_t of(std::uint64_t stamp) {
    constexpr std::uint64_t day = 86'400'000'000;
    const bool is_far = last_ != 0 && stamp > last_ + day;
    const bool is_believed = !is_far || (ahead_ != 0 && stamp + day > ahead_);
    ahead_ = is_far ? stamp : 0;
    if (!is_believed) return last_;
    last_ = std::max(last_, stamp);
    return stamp;
  }

 private:
  std::uint64_t last_ = 0;   // the latest that was believed
  std::uint64_t ahead_ = 0;  // of the frame before, if that was far ahead
};

}  // namespace sluice::function
