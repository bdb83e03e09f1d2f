// How lanes carry on after something has happened to them: from what each has sent, looked at every few milliseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::cli::bench {

struct SentSample {
  double at = 0;                    // seconds since it happened; the first is 0
  std::vector<std::uint64_t> sent;  // frames, of each lane, since any time
};

struct Regained {
  double rate = 0;              // frames a second of all lanes together, in the end
  double after_s = 0;           // of the slowest lane: from then on it carried 90 % of that for 50 ms
  double pause_s = 0;           // the longest that a lane sent nothing, but for those that stand still
  unsigned standing_still = 0;  // lanes that sent nothing in the end
};
inline constexpr double steady_seconds = 0.05, steady_share = 0.9;

// Of samples in order, as many lanes in each. The end is the last half of the time behind `settled_s`. A lane that
// paused for 50 ms or longer is not steady before the longest such pause is over.
Regained regained(const std::vector<SentSample>& samples, double settled_s = 0);

}  // namespace sluice::cli::bench
