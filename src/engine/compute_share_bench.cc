// What a batch's jobs take a lane alone, and with a helper: from which number of jobs on it is worth it to share them
// (compute_share.h, least_shared). A job is a wait of `ns_a_job`. Needs two cores that nothing else is on.
#include <benchmark/benchmark.h>
#include <rte_cycles.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/machine.h"
#include "engine/compute_helpers.h"
#include "engine/placement.h"

namespace sluice::engine {
namespace {

class Waiting : public Divisible {
 public:
  explicit Waiting(std::uint64_t ticks) : ticks_(ticks) {}
  std::uint32_t jobs(const Batch& batch) const override { return batch.count; }
  void compute_jobs(Batch& /*batch*/, Span some, std::uint32_t /*thread*/) override {
    for (const std::uint64_t end = rte_rdtsc() + ticks_ * some.count; rte_rdtsc() < end;) {
    }
  }

 private:
  const std::uint64_t ticks_;
};

double ticks_of_a_ns() {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t before = rte_rdtsc();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(20)) {
  }
  return static_cast<double>(rte_rdtsc() - before) / 20e6;
}

// The time that a twentieth is below: a machine that does other things meanwhile runs the two threads at the same time
// for a part of the time.
double undisturbed(std::vector<double>& all) {
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 20));
  return all[all.size() / 20];
}

void a_batch(benchmark::State& state) {
  static const std::vector<int> cores = allowed_cores();  // before this thread is pinned
  if (cores.size() < 2) return state.SkipWithError("needs two cores");
  static const double per_ns = ticks_of_a_ns();
  const auto jobs = static_cast<std::uint32_t>(state.range(0));
  Waiting element(static_cast<std::uint64_t>(static_cast<double>(state.range(1)) * per_ns));
  ComputeHelpers helpers({cores[0]}, true, Scheduling::normal);
  ComputeShare* const share = helpers.add_share();
  helpers.start();
  pin_this_thread(cores[1], "bench");
  Batch batch;
  batch.count = jobs;
  std::vector<double> alone, shared;
  for (auto _ : state) {
    const std::uint64_t begin = rte_rdtsc();
    element.compute_jobs(batch, {0, jobs}, 0);
    const std::uint64_t middle = rte_rdtsc();
    share->run(element, batch, jobs);
    const std::uint64_t end = rte_rdtsc();
    alone.push_back(static_cast<double>(middle - begin) / per_ns);
    shared.push_back(static_cast<double>(end - middle) / per_ns);
    state.SetIterationTime(static_cast<double>(end - middle) / per_ns / 1e9);
  }
  state.counters["alone_ns"] = undisturbed(alone);
  state.counters["shared_ns"] = undisturbed(shared);
}
BENCHMARK(a_batch)
    ->ArgNames({"jobs", "ns_a_job"})
    ->ArgsProduct({{32, 64, 128, 256}, {0, 50, 200, 1000}})
    ->UseManualTime()
    ->Iterations(5000);

}  // namespace
}  // namespace sluice::engine
