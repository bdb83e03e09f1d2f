// The router on a replay port with a full-size table, as several benches want it.
#pragma once

#include <string>

#include "base/error.h"
#include "cli/bench/bench.h"
#include "cli/bench/rig.h"

namespace sluice::cli::bench {

inline constexpr std::uint64_t router_memory = 6ULL << 30;

// Writes a table of 600 K IPv4 and 200 K IPv6 routes (or options.table's, with made-up IPv6 ones) to `table_path`.
// Answers with the router's settings: 254 gateways on the replay port, all of them resolved neighbours, and default
// routes, so that a random destination is always forwarded.
Expected<std::string> write_settings(const BenchOptions& options, const std::string& table_path);

RigOptions router_rig(const BenchOptions& options, const std::string& settings, int family, engine::Mode mode,
                      const std::string& device);

}  // namespace sluice::cli::bench
