#include "bench/gpu_only.h"

#include <cstdio>

#include "bench/rig.h"

namespace sluice::cli::bench {

int run_gpu_bench(const std::string& name, std::uint64_t bytes, const BenchOptions& options,
                  const std::function<Expected<void>(Goals&)>& run) {
  Goals goals(name, options.goals);
  Expected<void> ok = start_bench_eal(bytes);
  ok = ok ? run(goals) : ok;
  if (!ok) {
    std::fprintf(stderr, "bench %s: %s\n", name.c_str(), ok.error().message.c_str());
    return 1;
  }
  return goals.status();
}

}  // namespace sluice::cli::bench
