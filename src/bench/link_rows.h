// The link's ceilings as rows of `--csv`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/rig.h"
#include "device/link_probe.h"

namespace sluice::cli::bench {

// A label and its figure each: a rate in gbytes(), or times in p50_us and p99_us. What was not measured has no row.
std::vector<std::pair<std::string, Outcome>> link_rows(const device::LinkCeilings& ceilings);

}  // namespace sluice::cli::bench
