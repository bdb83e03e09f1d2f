// What the benches of kernels by themselves, without the engine, have in common: match and fused.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/goals.h"

namespace sluice::cli::bench {

// What was made, in its place; or why it could not be made.
template <typename T>
Expected<void> keep(Expected<T> made, T& where) {
  if (!made) {
    return tl::unexpected(made.error());
  }
  where = std::move(*made);
  return {};
}

// Starts DPDK with so many bytes and runs the bench `name`. The exit status: 1 after an error, which is said, else that
// of the goals.
int run_gpu_bench(const std::string& name, std::uint64_t bytes, const BenchOptions& options,
                  const std::function<Expected<void>(Goals&)>& run);

}  // namespace sluice::cli::bench
