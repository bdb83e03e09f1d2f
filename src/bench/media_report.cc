#include "bench/media_report.h"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <cstdio>

#include "bench/csv.h"
#include "engine/bound.h"

namespace sluice::cli::bench {

std::string bound_text(const engine::Options& options, const Outcome& outcome) {
  if (options.device == "cpu") return {};
  const auto timing = engine::plan_timing(options.deadline, options.cycle, options.overlap);
  if (!timing) return {};
  const auto us = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; };
  return fmt::format(
      "bound {:.0f} us; slowest frame {:.0f}; a batch has {:.0f} us on the device; the slowest took {:.0f}; {} overran",
      us(timing->bound), outcome.max_us, us(timing->overlap * timing->cycle), outcome.device_max_us, outcome.overruns);
}

std::string MediaReporter::label(const std::string& what) const {
  return fmt::format("{} {} {} {} {} ms {}", bed.device, options.suite, options.direction, one.mix, one.deadline_ms,
                     what);
}

double MediaReporter::share(const Outcome& outcome) const {
  return ceiling > 0 ? moved_gbytes(bed.streams, outcome) / ceiling : 0;
}

void MediaReporter::say(const std::string& what, const Outcome& outcome, double goal) const {
  std::printf("RESULT media %s: %.2f Mpps, %.1f Gbit/s of frames, %.2f GB/s of packets each way%s\n",
              label(what).c_str(), outcome.mpps(), 8 * outcome.gbytes(), moved_gbytes(bed.streams, outcome),
              ceiling > 0 ? fmt::format(" = {:.1f} % of {:.1f}", 100 * share(outcome), ceiling).c_str() : "");
  std::printf("  a lane's core: %.0f ns to collect a frame, %.0f to forward it, %.0f %% of its time\n",
              outcome.collecting_ns(), outcome.forwarding_ns(),
              100 * (outcome.collecting_us + outcome.forwarding_us) / (1e6 * outcome.seconds * bed.rig.lanes));
  if (outcome.launches != 0) {
    std::printf("  the worker's core: %.1f us a launch, %.0f %% of its time\n",
                outcome.launching_us / static_cast<double>(outcome.launches),
                100 * outcome.launching_us / (1e6 * outcome.seconds));
  }
  const std::string bound = bound_text(bed.rig.engine, outcome);
  if (!bound.empty()) std::printf("  %s\n", bound.c_str());
  Yardsticks yardsticks;
  yardsticks.ceiling_gbytes = ceiling;
  yardsticks.deadline_us = one.deadline_ms * 1e3;
  yardsticks.share = share(outcome);
  yardsticks.goal = goal;
  yardsticks.setting = fmt::format("{} streams; {} lanes; {} batches of {}; {}; ring {}; admission {}; checksums {}{}",
                                   bed.streams.streams, bed.rig.lanes, bed.rig.engine.batches, bed.rig.engine.batch,
                                   cycle_text(bed.rig), bed.rig.ring, engine::admit_name(bed.rig.engine.admission),
                                   bed.streams.checksums ? "yes" : "no", bound.empty() ? "" : "; " + bound);
  append_csv(options, "media", label(what), outcome, yardsticks);
  std::fflush(stdout);
}

}  // namespace sluice::cli::bench
