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
  double rate = 0;              // frames a second of all lanes together, in the last half of the time
  double after_s = 0;           // of the slowest lane: the first sample from which it carries 90 % of that for 50 ms
  double pause_s = 0;           // the longest that a lane sent nothing, but for those that stand still
  unsigned standing_still = 0;  // lanes that sent nothing in the last half of the time
};
inline constexpr double steady_seconds = 0.05, steady_share = 0.9;

// Of samples in order, as many lanes in each.
Regained regained(const std::vector<SentSample>& samples);

}  // namespace sluice::cli::bench
