// The time that confirming what a batch brings may take, shared among its frames, so that one that was made to be dear
// takes no other's.
//
//   time.begin(ticks, frames);         // of a batch
//   time.next(frames_to_come);         // before each frame, itself counted
//   while (time.left() != 0) ...       // what the frame may still use
//   time.spend(ticks);
//
// Half of the time belongs to the frames, the same part to each. The other half, and what frames have not used of their
// parts, is for whoever comes first: a frame may use an eighth of what is left of it, or its own part where that is
// more; the last seven share it evenly. So however dear the frames before are, a frame has its part; the first one has
// a sixteenth of the whole, and where few frames need time, each has about as much.
//
// Once the common half is used up, the parts are for frames of few prefilter matches (allows()): one of many would not
// come to its end, and is left whole.
//
// What has waited in a stream, and has to be searched because a frame releases it, is ordinary traffic where packets
// were lost: it may take half of what is left of the common half, besides the frame's share (left_for_waiting()).
//
// A prefilter match that has been begun may take longer than the frame has, by Detector::least_ticks or what it cannot
// be stopped in (payload_matcher.h), and that is taken from the common half, then from the parts of those that come
// later. The whole is never exceeded by more, but where the machine does not run the thread. What is spent at once and
// is long is counted (long_steps()): nearly always that is why.
//
// Thread-safety: none. Cost: next() a store; a division for each batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice::function {

class ConfirmTime {
 public:
  static constexpr std::uint64_t unlimited = ~std::uint64_t{0};

  // Without next(), each frame may use all that is left.
  void begin(std::uint64_t ticks, std::uint32_t frames = 1) {
    whole_ = left_ = ticks;
    over_ = 0;
    own_ = ticks / 2 / std::max(1U, frames);
    floor_ = waiting_floor_ = 0;
    to_come_ = 0;
    scarce_ = false;
  }
  void next(std::uint32_t frames_to_come) { to_come_ = frames_to_come; }

  bool limited() const { return whole_ != unlimited; }
  // Of the frame's share; `unlimited` or what is left of it.
  std::uint64_t left() {
    if (!limited()) return unlimited;
    if (to_come_ != 0) begin_share();
    return left_ - std::min(left_, floor_);
  }
  // Likewise, to search what waited for the frame.
  std::uint64_t left_for_waiting() {
    if (left() == unlimited) return unlimited;
    return left_ - std::min(left_, waiting_floor_);
  }
  // Whether a frame may begin with so many prefilter matches.
  bool allows(std::size_t prefilter_matches) {
    left();
    return prefilter_matches <= few || !scarce_;
  }
  // Whether the frame may begin what takes as long as many prefilter matches: it has a good part of what the first one
  // had.
  bool allows_search() {
    const std::uint64_t now = left();
    return now != 0 && now >= whole_ / least_for_search;
  }
  // Of what begin() was given; 0 where that is unlimited.
  std::uint64_t spent() const { return whole_ - left_; }
  // The same, with what was spent beyond that.
  std::uint64_t taken() const { return spent() + over_; }
  void spend(std::uint64_t ticks) {
    if (!limited()) return;
    if (ticks >= long_from_) [[unlikely]] {
      ++long_steps_.times;
      long_steps_.ticks += ticks;
    }
    const std::uint64_t here = std::min(left_, ticks);
    left_ -= here;
    over_ += ticks - here;
  }
  // From how many ticks on what is spent at once is long.
  void set_long_from(std::uint64_t ticks) { long_from_ = ticks; }
  struct LongSteps {
    std::uint64_t times = 0, ticks = 0;
  };
  const LongSteps& long_steps() const { return long_steps_; }  // of all batches
  // To search what waited: the frame has its share still.
  void spend_on_waiting(std::uint64_t ticks) {
    spend(ticks);
    floor_ -= std::min(floor_, ticks);
  }

 private:
  static constexpr std::uint32_t part = 8, least_for_search = 32, few = 4;

  void begin_share() {
    const std::uint32_t behind = to_come_ - 1;
    const std::uint64_t common = left_ - std::min(left_, own_ * behind);
    const std::uint64_t share = common / std::min(part, to_come_);
    scarce_ = share < own_;
    floor_ = left_ - std::min(left_, std::max(own_, share));
    waiting_floor_ = left_ - (common - std::min(common, own_)) / 2;
    to_come_ = 0;
  }

  std::uint64_t whole_ = unlimited, left_ = unlimited;
  std::uint64_t over_ = 0;  // spent when nothing was left
  std::uint64_t long_from_ = unlimited;
  LongSteps long_steps_;
  std::uint64_t own_ = 0;            // each frame's part
  std::uint64_t floor_ = 0;          // of left_: the frame may not go below
  std::uint64_t waiting_floor_ = 0;  // likewise, for what waited
  std::uint32_t to_come_ = 0;  // frames, with the one whose share has not been asked for; 0: it has, or there is none
  bool scarce_ = false;        // the common half is used up
};

}  // namespace sluice::function
