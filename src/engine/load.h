// Whether a lane's load is low, so that it computes on its own core: a GPU pays when a cycle holds enough frames; below
// that the core is done before a GPU would have started. But few frames that cost much (an inspection) are no low load:
// a core that cannot keep up with them would never be brought as many as make a load high.
//
// At a time point the lane compares the frames of the cycles since the last one that it saw. Enough of them are a high
// load. Few are a low load only if they are also little work, by what one cost lately, and if the first receive behind
// the time point takes all that waits in the queue: where more waits, the lane had not come to receive it (the machine
// did not run it, or every batch was in use), few frames say nothing, and the load counts as it did before.
//
// The worker sleeps through time points while nobody needs it, so a lane of low load also looks for itself, once a
// cycle, at a receive: at the frames and at their work. That has to be too much twice in a row, for behind an
// interruption of the thread more frames have come than usual, and it counts as work.
//
// The factors between the two ways keep a steady load from flapping, and little work has to be so for 32 cycles: in one
// of them fewer frames come by chance. What a frame costs to compute is not seen while
// the device does it: behind an attack the load would stay high until there is next to nothing of it. So after
// `retry_cycles` a load of few frames counts as low whatever they cost, and the first cycle shows it.
//
// Thread-safety: the collector's thread. Cost: an addition per receive, a division per cycle.
#pragma once

#include <cstdint>
#include <utility>

#include "engine/inline_pace.h"

namespace sluice::engine {

class LoadWatch {
 public:
  // Of a cycle: what makes a low load high. A high one is low with fewer than half of the frames and a quarter of the
  // work.
  struct Limits {
    std::uint32_t frames;            // 0: high from the first time point on, for ever
    std::uint64_t cycle_tsc = 0;     // how long a cycle is
    std::uint64_t work_tsc = 0;      // 0: however long it takes
    std::uint64_t retry_cycles = 0;  // with few frames
  };
  explicit LoadWatch(const Limits& limits) : limits_(limits) {}

  // `cycles` since the last time point that the lane saw: it may have slept through some, so frames are an average.
  // `cost`: of a frame, in ticks, if this core computes it (FrameCost).
  void time_point(std::uint64_t cycles, std::uint64_t cost) {
    few_ = frames_ < cycles * (low_ ? limits_.frames : limits_.frames / 2);
    if (!low_) {
      high_for_ += cycles;
      light_for_ = bears(frames_, cycles, cost, limits_.work_tsc / 4) ? light_for_ + cycles : 0;
      const bool is_light = limits_.work_tsc == 0 || light_for_ >= settled_cycles;
      tries_ = !is_light && high_for_ >= limits_.retry_cycles;
      few_ = few_ && (is_light || tries_);
      point_frames_ = frames_;
      point_cycles_ = cycles;
    }
    low_ = low_ && few_;
    frames_ = 0;
  }
  // After every receive that the lane had a batch for: how many frames it brought to compute, whether it took all that
  // waited, and the time.
  void received(std::uint32_t frames, bool took_all, std::uint64_t now, std::uint64_t cost) {
    frames_ += frames;
    if (std::exchange(few_, false) && took_all && !low_) {
      // What waits behind the time point came before it: where the thread did not receive, that is the load.
      if (!tries_ && !bears(point_frames_ + frames, point_cycles_, cost, limits_.work_tsc / 4)) {
        light_for_ = 0;
        return;
      }
      low_ = true;
      high_for_ = light_for_ = 0;
      heavy_ = tries_ ? 1 : 0;
      window_frames_ = window_ = 0;
    }
    if (low_ && limits_.work_tsc != 0) look(frames, now, cost);
  }
  // Before the first time point every load is low.
  bool low() const { return low_; }

 private:
  bool bears(std::uint64_t frames, std::uint64_t cycles, std::uint64_t cost, std::uint64_t work_tsc) const {
    return limits_.work_tsc == 0 || frames * cost < cycles * work_tsc * FrameCost::scale;
  }
  void look(std::uint32_t frames, std::uint64_t now, std::uint64_t cost) {
    if (frames == 0) return;
    if (window_ == 0) {
      window_ = now;
      return;
    }
    window_frames_ += frames;
    const std::uint64_t past = now > window_ ? now - window_ : 0;
    if (past < limits_.cycle_tsc) return;
    const std::uint64_t cycles = past / limits_.cycle_tsc;
    const bool is_light =
        window_frames_ < cycles * limits_.frames && bears(window_frames_, cycles, cost, limits_.work_tsc);
    heavy_ = is_light ? 0 : heavy_ + 1;
    low_ = heavy_ < 2;
    window_frames_ = 0;
    window_ = now;
  }

  static constexpr std::uint64_t settled_cycles = 32;  // one with little work may be chance

  Limits limits_;
  std::uint64_t frames_ = 0;         // since the last time point
  std::uint64_t window_ = 0;         // when a lane of low load last looked for itself; 0: not yet,
  std::uint64_t window_frames_ = 0;  // what has come since,
  std::uint32_t heavy_ = 0;          // and how often in a row it was too much
  std::uint64_t high_for_ = 0;       // cycles,
  std::uint64_t light_for_ = 0;      // the last of them in a row with little work
  std::uint64_t point_frames_ = 0;   // at the last time point
  std::uint64_t point_cycles_ = 0;
  bool tries_ = false;  // at the last time point
  bool few_ = false;    // at the last time point, and nothing has been received since
  bool low_ = true;
};

}  // namespace sluice::engine
