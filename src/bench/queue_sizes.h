// How many frames the batches and the receive queues of a bench at a deadline hold.
#pragma once

#include <string>

#include "bench/rig.h"

namespace sluice::cli::bench {

// Of what the ceiling carries in a deadline: what all batches together hold, and what may wait in the receive queues.
// Larger batches and queues catch up with more that has waited, and what they hold may be late: which shares are best
// is measured (docs/results).
struct QueueShares {
  double under_way, waiting;
};

// What is held at a deadline.
struct HeldCase {
  std::string mix;
  double deadline_ms;
  double cycle_us;
  unsigned overlap;
  unsigned batches;
  QueueShares queues;
  double goal = 0;  // share of the ceiling that is aimed at
};

// Mean frame of a mix; of one that there is not, the largest frame.
double mean_frame(const std::string& mix);

// Fills in the rig's mix, times, batches, ring and frames, after its lanes, for a ceiling in GB/s; what the options say
// goes before, and they are applied to the rig's engine. The device under test is the GPU: no batch is too small for
// it.
void fill_in(const BenchOptions& options, const HeldCase& one, double ceiling, RigOptions& rig);

}  // namespace sluice::cli::bench
