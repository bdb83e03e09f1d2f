// The worker by itself. With lanes and a device: engine_device_test.cc.
#include "engine/worker.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <sched.h>

#include <chrono>
#include <thread>
#include <vector>

#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

// It sleeps for 20 ms at a time, in which a hundred time points pass.
TEST(Worker, RaisesTheTimePointsThatItSleptThrough) {
  constexpr auto cycle = std::chrono::microseconds(200);
  const std::uint64_t cycle_tsc = rte_get_tsc_hz() / 1'000'000 * cycle.count();
  JitterGpu gpu(1);
  PeerFunction function{PortTable(std::vector<PortInfo>())};
  Clock clock;
  Worker worker({.gpu = &gpu,
                 .function = &function,
                 .lanes = {},
                 .clock = &clock,
                 .timing = {.cycle = cycle, .bound = {}, .deadline = {}, .overlap = 1},
                 .mode = Mode::full,
                 .core = sched_getcpu(),
                 .busy = false,
                 .scheduling = Scheduling::normal});
  // One for each sleep would take twice as long.
  const auto raised_to = [&](std::uint64_t epoch) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (clock.epoch.load() < epoch && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return clock.epoch.load() >= epoch;
  };
  const std::uint64_t start = rte_rdtsc();
  worker.start();
  EXPECT_TRUE(raised_to(1));
  const std::uint64_t first = rte_rdtsc();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(raised_to((rte_rdtsc() - first) / cycle_tsc));
  worker.stop();
  EXPECT_LE(clock.epoch.load(), (rte_rdtsc() - start) / cycle_tsc);
  EXPECT_LT(worker.counters().cycles.get() * 2, clock.epoch.load()) << "it did not sleep";
}

}  // namespace
}  // namespace sluice::engine
