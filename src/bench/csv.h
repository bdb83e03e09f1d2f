// The rows that `--csv` appends, for scripts/plot-results: one for each figure of a bench.
#pragma once

#include <string>

#include "base/error.h"
#include "bench/rig.h"

namespace sluice::cli::bench {

// What a figure is compared with. 0: there is no such thing, and the field stays empty.
struct Yardsticks {
  double share = 0;           // of the ceiling, or of the offered load
  double goal = 0;            // the share that is aimed at
  double ceiling_gbytes = 0;  // of this run
  double deadline_us = 0;
  double ns_per_frame = 0;  // of one core: the median of the rounds, the least and the most
  double ns_low = 0, ns_high = 0;
  std::string setting;  // what the row was measured with
};

std::string csv_header();
// Commas in the label and the setting become semicolons.
std::string csv_line(const std::string& bench, const std::string& label, const Outcome& outcome,
                     const Yardsticks& yardsticks);

// An Error when `path` cannot be appended to, or holds something else than rows of these columns.
Expected<void> check_csv(const std::string& path, const std::string& header = csv_header());

// Appends the line, below the header where the file is new or empty.
Expected<void> append_line(const std::string& path, const std::string& header, const std::string& line);

// Nothing without a file in the options. A row that cannot be written is said on stderr.
void append_csv(const BenchOptions& options, const std::string& bench, const std::string& label, const Outcome& outcome,
                const Yardsticks& yardsticks);

}  // namespace sluice::cli::bench
