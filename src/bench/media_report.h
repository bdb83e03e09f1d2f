// What `bench media` says of a measurement, and writes of it.
#pragma once

#include <string>

#include "bench/bench.h"
#include "bench/media_bed.h"
#include "bench/queue_sizes.h"
#include "bench/rig.h"

namespace sluice::cli::bench {

// The theorem's bound of a GPU's rig and its premise for the device, beside what was measured (docs/real-time.md).
// Empty where there is none: of cores alone, or where the deadline is none that a cycle could keep.
std::string bound_text(const engine::Options& options, const Outcome& outcome);

struct MediaReporter {
  const BenchOptions& options;
  const HeldCase& one;
  const MediaBed& bed;
  double ceiling;  // GB/s both ways; 0: none

  std::string label(const std::string& what) const;
  // What moves over the link each way, of the ceiling; 0: there is none.
  double share(const Outcome& outcome) const;
  // A line, and a row of the CSV. `goal`: the share that is judged elsewhere.
  void say(const std::string& what, const Outcome& outcome, double goal = 0) const;
};

}  // namespace sluice::cli::bench
