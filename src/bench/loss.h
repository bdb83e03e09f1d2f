// What sluice bench loss runs in which process.
#pragma once

#include <string>
#include <vector>

#include "bench/failing_device.h"

namespace sluice::cli::bench {

struct LossCase {
  std::string chain;
  Failure failure;
};

// Of these chains and failures, those that need a process each: all behind which a process has no GPU any more
// (leaves_gpu()), unless there is one case in all, with which the bench ends.
std::vector<LossCase> cases_of_their_own(const std::vector<std::string>& chains, const std::vector<Failure>& failures);

// The command line of such a process: that of this one, but for its --only and --ways.
std::vector<std::string> words_for(const LossCase& one, const std::vector<std::string>& words);

}  // namespace sluice::cli::bench
