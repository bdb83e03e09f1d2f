// What inspecting may take: of a batch (BatchLimits), and what of it one packet still has (PacketBudget).
//
//   limits.begin(ticks, frames, true);        // of a batch
//   limits.next(frames_to_come);              // before each frame
//   PacketBudget budget(limits.time, most_prefilter_matches);
//
// Times are ticks of the time-stamp counter. Thread-safety: none, of one lane.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flow/flow.h"
#include "function/inspect/confirm_time.h"
#include "function/inspect/lateness.h"

namespace sluice::function {

// Who of a batch may release all that waits in streams, though there is no time for it: one frame, and one other flow.
struct WholeReleases {
  bool allowed = true;
  std::uint64_t first_frame = 0;                 // by its number; 0: none yet
  const flow::Flow* first_other_flow = nullptr;  // null: none yet
  std::uint64_t frame = 0;                       // that may release what it does, having been asked for ahead
  std::uint64_t beyond = 0;                      // ticks, by those

  void begin(bool are_allowed) {
    *this = {};
    allowed = are_allowed;
  }
};

struct BatchLimits {
  ConfirmTime time;              // of the batch's frames
  ConfirmTime other_flows_time;  // set aside for other flows than the frames': an eighth
  std::uint32_t frames_to_come = 0;
  std::uint64_t late_from = Lateness::never;  // from this tick on HTTP is searched within `time`
  Lateness lateness;
  WholeReleases releases;
  std::uint64_t most_decoding = Lateness::never;  // of a frame's bodies; not of the batch

  void begin(std::uint64_t ticks, std::uint32_t frames, bool are_releases_allowed) {
    const std::uint64_t aside = ticks == ConfirmTime::unlimited ? 0 : ticks / 8;
    time.begin(ticks - aside, frames);
    other_flows_time.begin(aside == 0 ? ticks : aside, frames);
    frames_to_come = 0;
    late_from = Lateness::never;
    lateness.never_late();
    releases.begin(are_releases_allowed);
  }
  void next(std::uint32_t to_come) {
    time.next(to_come);
    frames_to_come = to_come;
  }
  std::uint64_t spent() const { return time.spent() + other_flows_time.spent(); }
  std::uint64_t taken() const { return time.taken() + other_flows_time.taken(); }
  void set_long_from(std::uint64_t ticks) {
    time.set_long_from(ticks);
    other_flows_time.set_long_from(ticks);
  }
  ConfirmTime::LongSteps long_steps() const {
    const ConfirmTime::LongSteps &own = time.long_steps(), &others = other_flows_time.long_steps();
    return {own.times + others.times, own.ticks + others.ticks};
  }
};

struct PacketBudget {
  // Headers, and what a frame brings of a body, twice.
  static constexpr std::size_t least_allowance = 8192;

  // `batch_time`: of which the packet has its share.
  PacketBudget(ConfirmTime& batch_time, std::uint32_t most_prefilter_matches)
      : time(batch_time), prefilter_matches(most_prefilter_matches) {}

  ConfirmTime& time;
  std::uint32_t prefilter_matches;          // that may still be confirmed
  std::size_t allowance = least_allowance;  // bytes of HTTP that are searched without being counted as time
  std::size_t waited = 0;                   // likewise, of what waited in a stream
  std::uint64_t decoding = 0;               // ticks of the time that decoding has taken
};

}  // namespace sluice::function
