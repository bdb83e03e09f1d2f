// One figure of several short measurements: what runs cold is left away, and a bad moment of the machine is outvoted.
#pragma once

#include <functional>
#include <vector>

#include "base/error.h"
#include "bench/rig.h"

namespace sluice::cli::bench {

inline constexpr unsigned repetitions = 5;

// The middle one of these by frames a second, which says of how many, with the least and the most. At least one.
Outcome middle_of(const std::vector<Outcome>& outcomes);

// The middle one of so many, after one more that counts for nothing; all together take `seconds`. The
// first Error ends it.
Expected<Outcome> in_rounds(double seconds, const std::function<Expected<Outcome>(double seconds)>& measure);

}  // namespace sluice::cli::bench
