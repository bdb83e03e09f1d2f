// The tables and figures of the paper that Sluice's clock follows (Zhang, Hu and Hua 2015), on this machine: their
// axes, as points of one CSV, which scripts/plot-figures draws beside the paper's own numbers where it prints them.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "bench/bench.h"

namespace sluice::cli::bench {

struct FigurePoint {
  std::string figure;  // "table 1", "figure 6", ...
  std::string series;
  std::string x_name;  // with its unit
  double x;
  std::string y_name;
  double y;
};

// Said, and appended to the options' CSV. A point that cannot be written is said on stderr.
void add_point(const BenchOptions& options, const FigurePoint& point);

// Table 1, figures 6 and 7 (batches on the GPU by themselves) and 14 and 15 (of what a batch's time is made up).
Expected<void> batch_figures(const BenchOptions& options);
std::uint64_t batch_figures_bytes();  // of DPDK's memory, for these
// Figures 9 and 11 (throughput by pipelines, in the three modes) and 12 and 13 (distributions of latency), in the
// engine.
Expected<void> engine_figures(const BenchOptions& options);

}  // namespace sluice::cli::bench
