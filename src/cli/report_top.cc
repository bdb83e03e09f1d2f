#include <spdlog/fmt/fmt.h>

#include "cli/report.h"
#include "cli/text.h"
#include "cli/top_grid.h"
#include "cli/top_rates.h"

namespace sluice::cli {

using control::LaneSnapshot;
using control::LatencySnapshot;
using control::Snapshot;

std::string top_head(const Snapshot& s, const Rates& rates) {
  const LaneSnapshot sum = control::total(s);
  std::string out = fmt::format("sluice {}  {}  up {}\ndeadline {}", s.version, fmt::join(s.chain, ","),
                                clock_text(s.uptime_ns / 1'000'000'000), short_duration(s.deadline_ns));
  if (s.bound_ns != 0) out += "  " + bound_text(s.bound_ns, s.cycle_ns != 0);
  if (s.cycle_ns != 0) out += fmt::format("  cycle {}", short_duration(s.cycle_ns));
  const auto flow = [&](const char* name, auto frames, auto bytes) {
    return fmt::format(
        "{} {} frames/s, {}bit/s", name, short_number(rates.lanes_per_second(frames)),
        short_number(8 * rates.lanes_per_second(bytes)) + (8 * rates.lanes_per_second(bytes) < 999.5 ? " " : ""));
  };
  out += "\n" + flow("rx", &LaneSnapshot::rx_frames, &LaneSnapshot::rx_bytes) + "   " +
         flow("tx", &LaneSnapshot::tx_frames, &LaneSnapshot::tx_bytes);
  out += fmt::format("\ndropped {}/s   punted to the host {}/s   injected by it {}/s   in flight {}\n",
                     short_number(rates.lanes_per_second(&LaneSnapshot::dropped)),
                     short_number(rates.lanes_per_second(&LaneSnapshot::punted)),
                     short_number(rates.lanes_per_second(&LaneSnapshot::injected)), sum.in_flight);
  const LatencySnapshot& l = s.latency;
  const auto recent = [&](double fraction) {
    const std::uint64_t ns = rates.latency(fraction);
    return ns == 0 ? std::string("-") : "< " + short_duration(ns);
  };
  out += fmt::format("latency now   p50 {}   p99 {}\n", recent(0.5), recent(0.99));
  out += fmt::format("since start   p50 {}   p90 {}   p99 {}   p99.9 {}   max {}\n", short_duration(l.p50_ns),
                     short_duration(l.p90_ns), short_duration(l.p99_ns), short_duration(l.p999_ns),
                     short_duration(l.max_ns));
  out += fmt::format("missed deadlines {} ({}/s)   routes {} IPv4, {} IPv6   counters {}\n", sum.misses,
                     short_number(rates.lanes_per_second(&LaneSnapshot::misses)), s.routes.ipv4, s.routes.ipv6,
                     s.conserved ? "add up" : "DO NOT add up");
  for (std::size_t i = 0; i < s.jobs.size(); ++i) {
    const control::JobSnapshot& jobs = s.jobs[i];
    out += fmt::format("jobs {} {}/s done   {} late   {} refused   {} failed   in flight {}\n", jobs.kind,
                       short_number(rates.per_second(&Snapshot::jobs, i, &control::JobSnapshot::completed)), jobs.late,
                       jobs.full + jobs.too_late + jobs.refused_stopped, jobs.expired + jobs.failed_stopped,
                       jobs.in_flight);
  }
  std::string unseen;
  for (const control::PortSnapshot& port : s.ports) {
    if (port.arrival_unseen) unseen += (unseen.empty() ? "" : ", ") + port.name;
  }
  if (!unseen.empty()) out += "latencies are without the wait to be received at: " + unseen + "\n";
  return out;
}

std::string top_report(const Snapshot& now, const Snapshot* before) {
  const Rates rates(now, before);
  std::string out = top_head(now, rates) + degraded_line(now, "degraded: ");
  for (const Grid& grid :
       {port_grid(now, rates), lane_grid(now, rates), device_grid(now, rates), drop_grid(now, rates)}) {
    out += "\n";
    for (const std::string& line : grid_lines(grid, {})) out += line + "\n";
  }
  if (const Grid metrics = metric_grid(now); !metrics.rows.empty()) {
    out += "\n";
    for (const std::string& line : grid_lines(metrics, {})) out += line + "\n";
  }
  return out;
}

}  // namespace sluice::cli
