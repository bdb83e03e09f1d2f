// A gateway whose GPU fails under load: what becomes of its frames.
//
//   saturated
//   at the offered rate for `seconds`
//   the GPU fails, and is given up; `seconds` more
//   it is taken again, where that can be; `seconds` more
//   no frame comes
//
// Frames are counted from the first one at the offered rate until all have left or were dropped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/choice_beds.h"
#include "bench/failing_device.h"
#include "bench/goals.h"
#include "bench/regained.h"
#include "bench/rig.h"

namespace sluice::cli::bench {

struct LossPlan {
  std::string device = "cuda:0";
  Failure failure = Failure::lose;
  double load = 0.7;      // the offered rate, of what the GPU carries saturated
  double offered = 0;     // instead, frames a second of all lanes; 0: by `load`
  double seconds = 2;     // before the failure, and after the GPU was given up; of the saturated rate, too
  double settling = 0.3;  // in front of each measurement
  engine::Admit admission = engine::Admit::in_time;
};

struct LossFigures {
  Outcome saturated;           // on the GPU
  double offered = 0;          // frames a second
  Outcome before, after;       // the failure; and the time in which the GPU was given up
  std::string why;             // it was
  bool is_back = false;        // it was taken again,
  double reset_ms = 0;         // which took so long,
  Outcome back;                // and computes again
  std::string why_not_back;    // it could not be
  double noticed_ms = 0;       // from the failure until it was
  double longest_wait_ms = 0;  // of a batch that the GPU had, until a core had computed it
  Regained regained;           // from the failure on
  // Of frames.
  std::uint64_t received = 0, forwarded = 0;
  std::uint64_t missed = 0;        // that found the receive queue full
  std::uint64_t refused = 0;       // overdue when they were collected
  std::uint64_t device_lost = 0;   // dropped as such
  std::uint64_t others = 0;        // dropped for other reasons
  std::string others_text;         // which, and how many
  std::uint64_t rescued = 0;       // that the GPU had, and cores computed
  std::uint64_t aside = 0;         // buffers that the GPU may still write to
  std::uint64_t out_of_order = 0;  // that left behind a later one of their lane
  std::int64_t unaccounted = 0;    // EngineStats::imbalance(), once the engine has stopped
  bool changes_frames = false;     // an element's device work does, so that frames may be lost
};

// The EAL runs. Of `plan.failure` that a process does not survive (leaves_gpu()) nothing may use the GPU afterwards.
// Errors: a gateway that does not start, a GPU that computes nothing before it fails, or is not given up within half
// a minute, and frames that do not leave when no more come.
Expected<LossFigures> measure_loss(const ChoiceChain& chain, const LossPlan& plan);

// What a chain carries saturated on a device that stays. Errors: as those of ChoiceRun::finish(), too.
Expected<Outcome> measure_saturated(const ChoiceChain& chain, const std::string& device, double seconds,
                                    double settling = 0.3);

// What must not be lost, and what must go on. `name`: of chain and failure.
void judge_loss(Goals& goals, const std::string& name, const LossFigures& figures);

}  // namespace sluice::cli::bench
