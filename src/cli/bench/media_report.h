// What `bench media` says of a measurement, and writes of it.
#pragma once

#include <string>

#include "cli/bench/bench.h"
#include "cli/bench/media_bed.h"
#include "cli/bench/queue_sizes.h"
#include "cli/bench/rig.h"

namespace sluice::cli::bench {

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
