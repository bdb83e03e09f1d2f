// Section 7.3 of Zhang, Hu and Hua as a procedure (docs/real-time.md): which cycles and numbers of CUDA streams are
// schedulable at which rates, B_I of each cycle, and what a batch and a byte cost the device. What is measured is a
// Bench's; here is what is tried, and what is made of it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/profile.h"

namespace sluice::cli {

struct CalibrationPlan {
  std::vector<std::chrono::nanoseconds> cycles;    // ascending; one that is 0: there is none
  std::vector<unsigned> streams;                   // ascending; one that is 0: there are none
  std::vector<unsigned> packets;                   // the largest first: it is what capacities are of
  std::vector<double> shares{0.25, 0.5, 0.75, 1};  // of the saturated rate
  unsigned steps = 6;  // of the search for each B_I: to 1/64 of the space between two shares
  // What else the machine does makes a measurement worse and never better: one of these tries has to be good.
  unsigned tries = 3;
  // Each B_I that was found so has to hold for this long, in one try; it is lowered until it does. 0: it is not tried.
  std::chrono::duration<double> hold{3};
};

inline constexpr unsigned least_packet = 64;
// The largest frame there is, half of it, and one of 128 bytes: those that there can be, each once, the largest first.
std::vector<unsigned> usual_packets(unsigned largest);

// A gateway of one cycle, number of streams and packet size.
class Bench {
 public:
  virtual ~Bench() = default;
  // At that rate, in bits of frames per second; 0: as much as the lanes take. For so long; 0: as long as it is set up
  // for. In what it answers cycle, streams and packet are set by others.
  virtual Expected<engine::ProfileCell> measure(std::uint64_t rate, std::chrono::duration<double> length) = 0;
  Expected<engine::ProfileCell> measure(std::uint64_t rate) { return measure(rate, {}); }
};
using BenchOpener =
    std::function<Expected<std::unique_ptr<Bench>>(std::chrono::nanoseconds cycle, unsigned streams, unsigned packet)>;
// What is done now, before it is, and of how many measurements at most how many are done.
using CalibrationProgress = std::function<void(const std::string& what, unsigned done, unsigned total)>;

// Whether a profile of what was measured so far would be taken; else why not.
using ProfileCheck = std::function<Expected<void>(const engine::Profile& profile)>;

// What is known of it before anything is measured: the packets, and each cycle, which carries nothing yet.
engine::Profile planned_profile(const CalibrationPlan& plan, engine::Profile profile);
// Fills in packet, slope, intercept, capacities and cells. `accepts` is asked as soon as µ is known, and when all is
// measured. An Error: a gateway could not be opened, or carried nothing, or the profile is not accepted; then it has
// what was measured all the same.
Expected<void> calibrate(const CalibrationPlan& plan, const BenchOpener& open, const CalibrationProgress& progress,
                         engine::Profile& profile, const ProfileCheck& accepts = {});

// As the paper's table 4, for people: T_S at the highest share by cycle and number of streams, what is schedulable with
// a star, and in bold where that can be shown, but for cycles with which nothing held. Then B_I of each cycle with what
// was wrong at the next higher rate that was tried, and what a batch costs.
std::string calibration_table(const engine::Profile& profile, bool bold);

// Where no cycle carries anything, so that a profile would refuse every stream: that, and what may help. Else empty.
std::string nothing_carried_text(const engine::Profile& profile);

}  // namespace sluice::cli
