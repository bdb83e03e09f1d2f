// Where the trouble of a held rate lies: in how many windows of it frames were late or not let in, and what was
// different in those.
#pragma once

#include <string>
#include <vector>

#include "bench/rig.h"

namespace sluice::cli::bench {

// One line, of at least one window.
std::string hold_text(const std::vector<Outcome>& windows);

}  // namespace sluice::cli::bench
