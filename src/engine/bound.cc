#include "engine/bound.h"

#include <string>

#include "base/units.h"
#include "engine/placement.h"
#include "engine/topology.h"
#include "port/virtual_device.h"

namespace sluice::engine {
namespace {
std::string us(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(time).count()) + "us";
}

// What a refusal adds where lanes sleep.
std::string sleep_text(std::chrono::nanoseconds sleep) {
  return sleep.count() == 0 ? std::string() : " + " + us(sleep) + " of sleep";
}
std::string or_poll_busily(std::chrono::nanoseconds sleep) {
  return sleep.count() == 0 ? "" : ", or set poll = \"busy\"";
}

// I, so many times, is the bound.
unsigned cycles_of(unsigned overlap, unsigned passes) {
  return 2 + overlap + (passes - 1) * (1 + overlap);
}

// J, so many times, is in the bound.
unsigned slices_of(unsigned overlap, unsigned passes) {
  return 1 + passes * (1 + overlap);
}

// By a virtual one no frame comes in that could wait.
bool needs_no_look(const PortOptions& port) {
  return port::is_virtual(port.device) || port::is_driver(port.device, "net_af_packet") ||
         port::is_driver(port.device, "net_tap");
}
}  // namespace

std::string bound_text(unsigned overlap, unsigned passes, bool jobs) {
  const std::string of_device = std::to_string(overlap);
  return "(2 + " + of_device + (passes == 1 ? "" : " + " + std::to_string(passes - 1) + "*(1 + " + of_device + ")") +
         (jobs ? " + " + std::to_string(slices_of(overlap, passes)) + "/" + std::to_string(jobs_part) : "") + ")";
}

Expected<Timing> plan_timing(std::chrono::nanoseconds deadline, std::chrono::nanoseconds cycle, unsigned overlap,
                             std::chrono::nanoseconds sleep, std::chrono::nanoseconds collect, unsigned passes,
                             bool jobs) {
  // In parts of a cycle of which J is one.
  const unsigned parts = cycles_of(overlap, passes) * jobs_part + (jobs ? slices_of(overlap, passes) : 0);
  const auto longest = (deadline - collect - sleep) * jobs_part / parts;
  Timing timing{cycle, {}, deadline, overlap, sleep};
  if (cycle.count() == 0) {
    timing.cycle = (deadline * 9 / 10 - collect - sleep) * jobs_part / parts;
  }
  if (timing.cycle < shortest_cycle) {
    // A tenth of the deadline is the reserve, and where lanes sleep a quarter is the sleep.
    const auto need = shortest_cycle * parts / jobs_part + collect;
    const auto least = (sleep.count() == 0 ? need * 10 / 9 : need * 20 / 13) + std::chrono::microseconds(1);
    return make_error("[engine] deadline = " + duration_text(deadline) + " leaves a cycle of " +
                      us(std::max(timing.cycle, {})) + ", and the shortest is " + us(shortest_cycle) +
                      ": raise the deadline to at least " + us(least) + ", or lower overlap" + or_poll_busily(sleep));
  }
  timing.jobs = jobs ? timing.cycle / jobs_part : std::chrono::nanoseconds(0);
  timing.bound = timing.cycle * parts / jobs_part + collect + sleep;
  if (timing.bound > deadline) {
    return make_error("[engine] the bound of this configuration, " +
                      (passes == 1 && !jobs ? "(2 + overlap)" : bound_text(overlap, passes, jobs)) + "*cycle + " +
                      us(collect) + sleep_text(sleep) + " = " + us(timing.bound) + ", exceeds its deadline of " +
                      duration_text(deadline) + ": with overlap = " + std::to_string(overlap) + " the cycle can be " +
                      us(std::max(longest, {})) + " at most" + or_poll_busily(sleep));
  }
  return timing;
}

Expected<Timing> plan_cpu_timing(std::chrono::nanoseconds deadline, std::chrono::nanoseconds sleep,
                                 std::chrono::nanoseconds batch) {
  Timing timing{std::chrono::nanoseconds(0), batch + sleep, deadline, 0, sleep};
  if (timing.bound > deadline) {
    const auto least = sleep.count() == 0 ? batch : batch * 4 / 3 + std::chrono::microseconds(1);
    return make_error("[engine] the bound of this configuration on the CPU, " + us(batch) + " of a batch" +
                      sleep_text(sleep) + " = " + us(timing.bound) + ", exceeds its deadline of " +
                      duration_text(deadline) + ": raise the deadline to at least " + us(least) +
                      or_poll_busily(sleep));
  }
  return timing;
}

Expected<Timing> plan_timing(const Options& options, bool on_gpu) {
  const bool sleeps = !polls_busily(options.poll, this_machine().cores.size()) &&
                      !std::all_of(options.ports.begin(), options.ports.end(), needs_no_look);
  const auto sleep = sleeps ? longest_lane_sleep(options.deadline) : std::chrono::nanoseconds(0);
  return on_gpu ? plan_timing(options.deadline, options.cycle, options.overlap, sleep, collect_time_of(options),
                              options.passes, options.jobs)
                : plan_cpu_timing(options.deadline, sleep, inline_batch_of(options));
}

}  // namespace sluice::engine
