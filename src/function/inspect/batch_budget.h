// How long confirming what a batch brings may take, so that none of its frames is late by it: what is left until its
// oldest frame has to go, less what its frames cost besides, and at most `most`. Never less than a sixteenth of `most`:
// a lane whose frames are late anyway goes on to look at a few.
//
//   const std::uint64_t ticks = budget.begin(rte_rdtsc(), oldest, frames, bytes);
//   ... judge, confirm, forward ...
//   budget.end(rte_rdtsc(), spent);
//
// What frames cost besides is an average over the batches before, by their number and bytes, so the first batches of
// traffic that costs more may take too long. A frame has to go when seven tenths of its deadline are over: while an
// attack takes all the time there is, frames leave by then, give or take what the average is wrong by. Frames whose
// bytes decide little of what they cost (HTTP's) make it wrong by half: so once a batch would not be done by the seven
// tenths, or left behind them, the next 256 have to go when 45 hundredths are over. Those that are not done by these,
// as all are where frames come to the lane that late, have the least there is to confirm; it is the seven tenths alone
// that make the 256 begin anew.
//
// looks_until() is for what is not confirming and yet dear: from then on frames are not looked at. A batch that began
// in time has until the seven tenths. One that came too late already, as behind a machine that did not run its lane,
// has no end, unless that happens again and again: then it is the traffic, and such a batch is not looked at at all,
// and those that are to go when 45 hundredths are over only until then, or a sixteenth of the deadline long. Late
// batches within two deadlines are one: all that a lane had under way, or that came meanwhile, is late by the one time
// that it did not run. One is forgotten after 2,048 batches that were not late.
//
// A batch whose frames took far more besides than such frames do, four times as much and long_from(), is counted: by
// itself it is of dear frames among cheap ones, HTTP mostly, and nearly always of a thread that was kept from its work.
//
// Times are ticks of the time-stamp counter. Thread-safety: none. Cost: two divisions for a batch.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::function {

class BatchBudget {
 public:
  // deadline 0: each batch has `most`.
  explicit BatchBudget(std::uint64_t most, std::uint64_t deadline = 0)
      : most_(most),
        patience_(deadline / 10 * 7),
        wary_patience_(deadline / 20 * 9),
        least_look_(deadline / 16),
        once_(2 * deadline) {}

  std::uint64_t begin(std::uint64_t now, std::uint64_t oldest, std::uint32_t frames, std::uint64_t bytes) {
    if (patience_ == 0) return most_;
    began_ = now;
    work_ = bytes + std::uint64_t{frame_worth} * frames;
    const std::uint64_t gone = (now > oldest ? now - oldest : 0) + cost_ * work_ / scale;
    const std::uint64_t patience = wary_ != 0 ? wary_patience_ : patience_;
    const bool is_behind = gone > patience, came_late = gone > patience_;
    late_from_ = is_behind ? 0 : oldest + patience;
    oldest_goes_ = oldest + patience_;
    if (times_late_ != often) {
      looks_until_ = came_late ? never : oldest_goes_;
    } else {
      looks_until_ = came_late ? 0 : std::max(oldest + patience, std::min(oldest_goes_, now + least_look_));
    }
    if (wary_ != 0) --wary_;
    if (came_late) is_late(now);
    return std::clamp(patience - std::min(patience, gone), most_ / 16, most_);
  }
  // The batch has left; `spent` of what begin() gave, and `beyond` that, by steps that cannot be stopped.
  void end(std::uint64_t now, std::uint64_t spent, std::uint64_t beyond = 0) {
    if (work_ == 0) return;
    const std::uint64_t took = now > began_ ? now - began_ : 0;
    const std::uint64_t besides = took - std::min(took, spent + beyond);
    if (besides >= long_from_ && cost_ != 0 && besides / 4 > cost_ * work_ / scale) [[unlikely]] {
      ++long_batches_.times;
      long_batches_.ticks += besides;
    }
    // A thread that was kept from its work for once makes no frame dear.
    const std::uint64_t most = std::max<std::uint64_t>(scale, 4 * cost_);
    const std::uint64_t cost = std::min((took - std::min(took, spent)) * scale / work_, most);
    cost_ = (7 * cost_ + cost + 4) / 8;
    if (now > oldest_goes_) {
      is_late(now);
    } else if (oldest_goes_ != never && times_late_ != 0 && --in_time_ == 0) {
      --times_late_;
      in_time_ = forgotten_after;
    }
    work_ = 0;
  }
  std::uint64_t most() const { return most_; }
  // From how many ticks on a batch may be long.
  void set_long_from(std::uint64_t ticks) { long_from_ = ticks; }
  struct LongBatches {
    std::uint64_t times = 0, ticks = 0;  // `ticks`: besides confirming
  };
  const LongBatches& long_batches() const { return long_batches_; }
  // When the oldest frame of the batch that has begun has to go; 0 where frames will not be done before that, though
  // nothing is confirmed: the batch is behind. The end of time without a deadline.
  std::uint64_t late_from() const { return late_from_; }
  std::uint64_t looks_until() const { return looks_until_; }
  // Of a frame of so many bytes, besides confirming.
  std::uint64_t cost(std::uint64_t bytes) const { return cost_ * (bytes + frame_worth) / scale; }

 private:
  // The batch that has begun: counted once.
  void is_late(std::uint64_t now) {
    wary_ = wary_batches;
    oldest_goes_ = never;
    in_time_ = forgotten_after;
    if (times_late_ != 0 && now - was_late_ < once_) return;
    was_late_ = now;
    times_late_ = std::min(times_late_ + 1, often);
  }

  static constexpr std::uint32_t frame_worth = 256;  // a frame costs as much as so many bytes
  static constexpr std::uint32_t scale = 1024;       // cost_: of so many bytes
  static constexpr std::uint32_t wary_batches = 256;
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  static constexpr std::uint32_t often = 8;               // batches that were late by the seven tenths
  static constexpr std::uint32_t forgotten_after = 2048;  // batches that were not: one of those

  const std::uint64_t most_, patience_, wary_patience_, least_look_, once_;
  std::uint64_t began_ = 0;
  std::uint64_t cost_ = 0;
  std::uint64_t work_ = 0;  // of the batch, in bytes
  std::uint64_t long_from_ = never;
  LongBatches long_batches_;
  std::uint64_t late_from_ = never;
  std::uint64_t oldest_goes_ = never;  // by the seven tenths; never: it is counted as late
  std::uint64_t looks_until_ = never;
  std::uint64_t was_late_ = 0;    // when that was counted last
  std::uint32_t wary_ = 0;        // batches to come that go earlier, since one was late by the seven tenths
  std::uint32_t times_late_ = 0;  // at most `often`
  std::uint32_t in_time_ = 0;     // batches to come in time before one is forgotten
};

}  // namespace sluice::function
