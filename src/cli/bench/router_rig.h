// The router on a replay port with a full-size table, as several benches want it.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "cli/bench/bench.h"
#include "cli/bench/rig.h"

namespace sluice::cli::bench {

inline constexpr std::uint64_t router_memory = 6ULL << 30;

// Temporary files for one bench, gone with this object, or by remove_router_table() in a signal handler.
class RouterTable {
 public:
  // Writes a table of 600 K IPv4 and 200 K IPv6 routes (or options.table's, with made-up IPv6 ones), and destinations
  // that lie behind them. The router's settings have 254 gateways on the replay port, all of them resolved neighbours,
  // and default routes, so that every destination is forwarded.
  static Expected<std::unique_ptr<RouterTable>> make(const BenchOptions& options);
  explicit RouterTable(std::string folder);
  ~RouterTable();
  RouterTable(const RouterTable&) = delete;
  RouterTable& operator=(const RouterTable&) = delete;

  const std::string& settings() const { return settings_; }  // TOML of [route]
  std::string routes_path() const { return folder_ + "/routes"; }
  std::string destinations_path() const { return folder_ + "/destinations"; }

 private:
  std::string folder_, settings_;
};

void remove_router_table();

RigOptions router_rig(const BenchOptions& options, const RouterTable& table, int family, engine::Mode mode,
                      const std::string& device);

}  // namespace sluice::cli::bench
