// How many frames the batches and the receive queues of a bench at a deadline hold.
#pragma once

#include <string>

#include "cli/bench/rig.h"

namespace sluice::cli::bench {

// Of what the ceiling carries in a deadline: what all batches together hold, and what may wait in the receive queues.
// Larger batches and queues catch up with more that has waited, and what they hold may be late: which shares are best
// is measured (docs/results).
struct QueueShares {
  double under_way, waiting;
};

// Mean frame of a mix; of one that there is not, the largest frame.
double mean_frame(const std::string& mix);

// Fills in the rig's batch, ring and frames, after its mix, lanes, deadline and batches, for a ceiling in GB/s; what
// the options say goes before, and they are applied to the rig's engine.
void size_queues(const BenchOptions& options, double ceiling, QueueShares shares, RigOptions& rig);

}  // namespace sluice::cli::bench
