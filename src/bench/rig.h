// A gateway on a memory replay port, for measuring: one port of N lanes whose frames leave by the same port.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "engine/engine.h"

namespace sluice::cli::bench {

// An element in front of the last one, by the name it is registered under.
struct RigElement {
  std::string name;
  std::function<std::unique_ptr<engine::Element>(const engine::PortTable& ports)> make;
};

struct RigOptions {
  std::vector<RigElement> elements;
  bool fused = true;              // the chain's work on a GPU is one kernel, where that can be
  std::string function = "echo";  // the last element
  std::string settings;           // its TOML
  std::string mix = "1408";
  int family = 4;
  unsigned refresh = 0;
  std::string protocol = "udp";  // as the replay port's
  std::string payload;           // as the replay port's `payload`; empty: random bytes
  std::string destinations;      // a file of addresses that frames are sent to; empty: random ones
  std::string flows;             // as the replay port's `flows`, instead of destinations
  engine::Options engine;        // device, deadline, …; ports are filled in
  unsigned ports = 1;            // "replay", "replay2", …, alike; figures are those of the first
  unsigned mtu = 1500;           // of each
  unsigned lanes = 1;
  unsigned frames = 16384;  // per lane
  unsigned ring = 0;        // of these, due ones that may wait to be received; 0: all
  bool ordered = false;     // frames come in the order of their addresses, also after some were dropped
  // Each makes an element that stands in front of all others and is in no chain's text, as for what brings frames.
  std::vector<std::function<std::unique_ptr<engine::Element>()>> in_front;
  // Puts something around the last element, for verification.
  std::function<std::unique_ptr<engine::Element>(std::unique_ptr<engine::Element>)> wrap;
};

// What is another in a gateway that somebody else describes, but not its lanes and frames.
using RigChange = std::function<void(RigOptions& options)>;

// What happened between two moments of a running gateway.
struct Outcome {
  double seconds = 0;
  std::uint64_t frames = 0, bytes = 0;  // transmitted; in collector-only mode collected, and dropped as measured_only
  std::uint64_t offered_missed = 0;     // due, but the receive ring was full: the gateway was too slow
  std::uint64_t refused = 0;            // overdue when they were collected (engine/admission.h); part of `dropped`
  std::uint64_t deadline_misses = 0;
  std::uint64_t misses_stalled = 0;  // of these: on time if the machine had let the threads run (engine/stall.h)
  std::uint64_t scheduling_stalls = 0, slow_launches = 0;
  std::uint64_t launches = 0, gpu_batches = 0;
  double launching_us = 0;      // of the worker, in rounds that launched or handed back
  double longest_stall_us = 0;  // since the engine started
  double stall_us = 0;          // of all threads together
  std::uint64_t gpu_frames = 0, cpu_frames = 0, dropped = 0;
  std::uint64_t overruns = 0, late_cycles = 0, receive_stalls = 0, sealed_full = 0;
  // What left lanes, or was dropped, of the slowest lane and of the fastest one.
  std::uint64_t slowest_lane = 0, fastest_lane = 0;
  unsigned lanes_late = 0;                      // lanes that were late
  double collecting_us = 0, forwarding_us = 0;  // of all lanes, in rounds that moved something
  double p50_us = 0, p99_us = 0, p999_us = 0, max_us = 0;
  double device_p50_us = 0, device_max_us = 0;  // T_S
  // Of how many rounds this is the middle one (rounds.h), and the least and the most of them. 0: it was measured once.
  unsigned rounds = 0;
  double mpps_low = 0, mpps_high = 0;
  double mpps() const { return static_cast<double>(frames) / seconds / 1e6; }
  double gbytes() const { return static_cast<double>(bytes) / seconds / 1e9; }
  double late_share() const {
    return static_cast<double>(deadline_misses) / static_cast<double>(std::max<std::uint64_t>(1, frames));
  }
  // Late frames that the machine does not explain.
  std::uint64_t own_misses() const { return deadline_misses - std::min(deadline_misses, misses_stalled); }
  // What a lane's core spends on a frame.
  double collecting_ns() const { return 1e3 * collecting_us / handled(); }
  double forwarding_ns() const { return 1e3 * forwarding_us / handled(); }
  double handled() const { return static_cast<double>(std::max<std::uint64_t>(1, frames + dropped)); }
  bool clean() const { return deadline_misses == 0 && offered_missed == 0 && refused == 0; }
  // Frames that were offered and not let in.
  std::uint64_t not_let_in() const { return offered_missed + refused; }
  double not_let_in_share() const {
    return static_cast<double>(not_let_in()) / static_cast<double>(std::max<std::uint64_t>(1, frames + not_let_in()));
  }
};

// A held rate, as a whole and in windows of a tenth of a second.
struct Hold {
  Outcome whole;
  std::vector<Outcome> windows;
};

// A running gateway under an offered load: the Rig, or a test's stand-in.
class Load {
 public:
  virtual ~Load() = default;
  // Frames per second of all lanes together; 0: as fast as they poll.
  virtual void set_rate(double frames_per_second) = 0;
  virtual Outcome measure(double warm_up_seconds, double seconds) = 0;
  // Without a warm-up; `while_clean`: ends with the first window in which a frame is late or not let in.
  virtual Hold hold(double seconds, bool while_clean) = 0;
};

// The elements of such a gateway, as the Rig makes them, and again for a reload. Errors: the last one's settings.
Expected<std::unique_ptr<engine::Pipeline>> make_pipeline(const RigOptions& options, const engine::PortTable& ports);

class Rig : public Load {
 public:
  static Expected<std::unique_ptr<Rig>> make(const RigOptions& options);
  engine::Engine& engine() { return *engine_; }
  port::ReplayPort& replay() { return *engine_->port(0).replay(); }
  unsigned lanes() const { return lanes_; }
  // Cores that the lanes run on, fewer than lanes when the machine has not as many, and that of a GPU's worker.
  unsigned cores() const;
  void set_rate(double frames_per_second) override { replay().set_rate(frames_per_second / lanes_); }
  // Starts the gateway if it does not run yet.
  Outcome measure(double warm_up_seconds, double seconds) override;
  Hold hold(double seconds, bool while_clean) override;
  // The same in windows of another length.
  Hold hold_in_windows_of(double window, double seconds, bool while_clean);
  // From now on no frame comes. Returns once none is under way; an Error when some do not leave within ten seconds.
  Expected<void> pause();
  // Ends the run; an Error when the counters do not add up, or when the CPU had to compute what the GPU was given.
  Expected<void> finish();

 private:
  Outcome since(const engine::EngineStats& before, const engine::EngineStats& after, double seconds) const;
  std::unique_ptr<engine::Engine> engine_;
  unsigned lanes_ = 1;
};

// What happened between two looks at an engine's counters.
Outcome outcome_between(const engine::EngineStats& before, const engine::EngineStats& after, double seconds,
                        double ticks_per_us, engine::Mode mode);

// "512 stopped, 3 tx_full": what was dropped, by its reasons.
std::string drops_text(const engine::EngineStats& stats);

// "cycle 100 us; overlap 3", and what else says when batches go.
std::string cycle_text(const RigOptions& rig);
// As many lanes as this machine has cores for beside the worker, the control thread and the forwarders.
unsigned default_lanes(const BenchOptions& options);
// Fills in what the command line says over what the bench wants.
void apply(const BenchOptions& from, engine::Options& to);
Expected<void> start_bench_eal(std::uint64_t bytes);

std::string row(const std::string& label, const Outcome& outcome);

}  // namespace sluice::cli::bench
