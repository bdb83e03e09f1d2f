#include "bench/link_rows.h"

#include <spdlog/fmt/fmt.h>

namespace sluice::cli::bench {
namespace {

using Rows = std::vector<std::pair<std::string, Outcome>>;

void add_rate(Rows& rows, std::string label, double gbytes) {
  if (gbytes > 0) {
    Outcome outcome;
    outcome.seconds = 1;
    outcome.bytes = static_cast<std::uint64_t>(gbytes * 1e9);
    rows.emplace_back(std::move(label), outcome);
  }
}

void add_both_ways(Rows& rows, const std::string& label, const device::BothWays& rate) {
  add_rate(rows, label + " up", rate.up);
  add_rate(rows, label + " down", rate.down);
  add_rate(rows, label + " both each way", rate.both);
}

void add_time(Rows& rows, std::string label, double median_us, double p99_us) {
  if (median_us > 0) {
    Outcome outcome;
    outcome.seconds = 1;
    outcome.p50_us = median_us;
    outcome.p99_us = p99_us;
    rows.emplace_back(std::move(label), outcome);
  }
}

}  // namespace

Rows link_rows(const device::LinkCeilings& ceilings) {
  Rows rows;
  add_both_ways(rows, "copy engine", ceilings.large);
  for (const auto& chunk : ceilings.chunks) {
    add_rate(rows, fmt::format("copy engine {} KiB chunks both each way", chunk.bytes >> 10), chunk.both);
  }
  for (const auto& row : ceilings.rows) {
    add_both_ways(rows, fmt::format("copy engine {} rows of {} B", row.count, row.bytes), row.rate);
  }
  for (const auto& read : ceilings.reads) {
    add_rate(rows, fmt::format("kernel reads {} B in order", read.bytes), read.in_order);
    add_rate(rows, fmt::format("kernel reads {} B in runs of 32", read.bytes), read.runs_of_32);
    add_rate(rows, fmt::format("kernel reads {} B shuffled", read.bytes), read.shuffled);
  }
  for (const auto& write : ceilings.writes) {
    add_rate(rows, fmt::format("kernel writes {} B in order", write.bytes), write.in_order);
  }
  for (const auto& copy : ceilings.host_copies) {
    add_rate(rows, fmt::format("host copies {} threads", copy.threads), copy.rate);
  }
  add_time(rows, "launch and synchronise", ceilings.launch_median_us, ceilings.launch_p99_us);
  add_time(rows, "flag there and back", ceilings.flag_median_us, ceilings.flag_p99_us);
  return rows;
}

}  // namespace sluice::cli::bench
