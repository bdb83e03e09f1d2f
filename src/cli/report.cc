#include "cli/report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>

#include "cli/text.h"
#include "control/health.h"
#include "function/control_plane.h"

namespace sluice::cli {

using control::DeviceSnapshot;
using control::DropSnapshot;
using control::LaneSnapshot;
using control::LatencySnapshot;
using control::PortSnapshot;
using control::Snapshot;
using control::StallSnapshot;

namespace {

// A line for each port that has any; its name stands between `before` and `after`.
std::string lost(const Snapshot& s, std::string_view what, std::uint64_t PortSnapshot::*frames, std::string_view before,
                 std::string_view after) {
  std::string lines;
  for (const PortSnapshot& port : s.ports) {
    if (port.*frames != 0)
      lines += fmt::format("  {:<22} {:>12}  {} {}{}\n", what, port.*frames, before, port.name, after);
  }
  return lines;
}

std::string next_hop_text(const control::NextHopRow& hop) {
  if (hop.port.empty()) return hop.gateway + " (gateway not on-link)";
  return (hop.gateway.empty() ? "" : hop.gateway + " ") + "on " + hop.port + (hop.resolved ? "" : " (no link address)");
}

}  // namespace

std::string degraded_line(const Snapshot& snapshot, std::string_view label) {
  const std::string why = control::ailments(snapshot);
  return why.empty() ? "" : fmt::format("{}{}\n", label, why);
}

std::string stats_report(const Snapshot& s) {
  const LaneSnapshot sum = control::total(s);
  std::string out = fmt::format("sluice {}, {} ({}) on {}, up {}\n", s.version, fmt::join(s.chain, ","), s.mode,
                                s.device, clock_text(s.uptime_ns / 1'000'000'000));
  out += degraded_line(s, "degraded     ");
  out += fmt::format("received     {} frames, {} bytes\ntransmitted  {} frames, {} bytes\n", sum.rx_frames,
                     sum.rx_bytes, sum.tx_frames, sum.tx_bytes);
  out += lost(s, "tx_errors", &PortSnapshot::tx_errors, "transmitted frames that the driver of port",
              " took and failed to send");
  out += lost(s, "missed", &PortSnapshot::missed, "frames that port", " had no capacity for");
  out += fmt::format("host         {} punted, {} injected\n", sum.punted, sum.injected);
  if (sum.emitted + sum.cloned + sum.consumed != 0) {
    out += fmt::format("elements     {} emitted, {} cloned, {} consumed\n", sum.emitted, sum.cloned, sum.consumed);
  }
  out += lost(s, "to_host_lost", &PortSnapshot::to_host_lost, "punted frames of port", " that its twin did not take");
  out += lost(s, "from_host_lost", &PortSnapshot::from_host_lost, "frames of the host that port", " did not take");
  out += lost(s, "checksums_finished", &PortSnapshot::checksums_finished, "frames that port",
              " received without a finished checksum");
  out += lost(s, "cut_up", &PortSnapshot::cut_up, "packets longer than the MTU that port", " cut up into frames");
  out += lost(s, "checksums_wrong", &PortSnapshot::checksums_wrong, "sampled TCP and UDP frames of port",
              " with a wrong checksum");
  out += fmt::format("dropped      {}\n", sum.dropped);
  for (const DropSnapshot& drop : s.drops) {
    if (drop.frames != 0) out += fmt::format("  {:<22} {:>12}  {}\n", drop.reason, drop.frames, drop.text);
  }
  out += fmt::format("in flight    {}\n", sum.in_flight);
  for (const control::IcmpErrorSnapshot& error : s.icmp_errors) {
    if (error.frames == 0) continue;
    out += fmt::format("answered     {} by an ICMP error or an RST: {}\n", error.frames, error.reason);
  }
  for (const control::MetricSnapshot& metric : s.metrics) {
    if (metric.value != 0) out += fmt::format("  {:<27} {:>12}  {}\n", metric.name, metric.value, metric.text);
  }
  const LatencySnapshot& l = s.latency;
  out += fmt::format("latency      p50 {}, p90 {}, p99 {}, p99.9 {}, max {}\n", short_duration(l.p50_ns),
                     short_duration(l.p90_ns), short_duration(l.p99_ns), short_duration(l.p999_ns),
                     short_duration(l.max_ns));
  out += fmt::format("deadline     {}, missed by {} of {} frames", short_duration(s.deadline_ns), sum.misses, l.frames);
  if (sum.misses_stalled != 0)
    out += fmt::format(" ({} by no more than threads were kept from running)", sum.misses_stalled);
  if (s.bound_ns != 0) out += "; " + bound_text(s.bound_ns, s.cycle_ns != 0);
  if (s.cycle_ns != 0) out += fmt::format(", cycle {}", short_duration(s.cycle_ns));
  out += "\n";
  if (s.cycles != 0) out += fmt::format("cycles       {}, {} late, {} overruns\n", s.cycles, s.late_cycles, s.overruns);
  for (const StallSnapshot& stalls : s.stalls) {
    if (stalls.times != 0) {
      out += fmt::format("stalls       {} {} times, {} together, {} at most\n", stalls.thread, stalls.times,
                         short_duration(stalls.sum_ns), short_duration(stalls.longest_ns));
    }
  }
  for (const DeviceSnapshot& device : s.devices) {
    out += fmt::format("device       {} ({}) {}: {} batches, {} frames", device.name, device.text, device.state,
                       device.batches, device.frames);
    if (device.rescued_frames != 0) out += fmt::format(", {} of them rescued", device.rescued_frames);
    if (device.frames_aside != 0) out += fmt::format(", {} buffers aside", device.frames_aside);
    out += "\n";
    if (!device.why.empty()) out += "             " + control::device_text(device) + "\n";
  }
  for (const control::HelperSnapshot& helper : s.helpers) {
    out += fmt::format("helper       core {}: {} jobs of {} parts of batches, {} busy\n", helper.core, helper.jobs,
                       helper.spans, short_duration(helper.busy_ns));
  }
  for (const control::JobSnapshot& jobs : s.jobs) {
    out += fmt::format(
        "jobs         {}: {} submitted, {} completed ({} late), {} refused ({} full, {} too late), {} failed ({} "
        "expired), {} in flight; {} by GPUs, {} by cores\n",
        jobs.kind, jobs.submitted, jobs.completed, jobs.late, jobs.full + jobs.too_late + jobs.refused_stopped,
        jobs.full, jobs.too_late, jobs.expired + jobs.failed_stopped, jobs.expired, jobs.in_flight, jobs.jobs_gpu,
        jobs.jobs_cpu);
  }
  out +=
      fmt::format("routes       {} IPv4, {} IPv6, {} neighbours\n", s.routes.ipv4, s.routes.ipv6, s.routes.neighbours);
  out += s.conserved ? "balance      counters add up: " : "balance      COUNTERS DO NOT ADD UP: ";
  out += "received + injected + emitted + cloned ";
  out += s.conserved ? "= " : "is not ";
  out += "transmitted + consumed + punted + dropped + in flight";
  return out + (s.jobs.empty() ? "\n" : "; jobs submitted as completed + refused + failed + in flight\n");
}

std::string link_text(const PortSnapshot& port) {
  if (port.interface_deleted) return "deleted";
  return port.link_up ? "up" : "down";
}

std::string ports_report(const std::vector<PortSnapshot>& ports) {
  Table table({"PORT", "LINK", "TWIN", "MAC", ">MTU", ">RX FRAMES", ">TX FRAMES", ">MISSED", ">ERRORS", "DEVICE"});
  for (const PortSnapshot& p : ports) {
    const std::string state = p.twin_deleted ? " (deleted)" : p.twin_down ? " (down)" : "";
    const std::string twin = p.twin.empty() ? "-" : p.twin + state;
    table.add({p.name, link_text(p), twin, p.mac, std::to_string(p.mtu), std::to_string(p.rx_frames),
               std::to_string(p.tx_frames), std::to_string(p.missed), std::to_string(p.rx_errors + p.tx_errors),
               p.device});
  }
  return table.str();
}

std::string routes_report(const control::RouteTable& routes) {
  Table table({"PREFIX", "KIND", "NEXT HOP", ">METRIC", "PROTOCOL"});
  for (const control::RouteRow& route : routes.routes) {
    std::string hops;
    for (const control::NextHopRow& hop : route.next_hops) {
      hops += (hops.empty() ? "" : ", ") + next_hop_text(hop);
      if (route.next_hops.size() > 1) hops += fmt::format(" (weight {})", hop.weight);
    }
    const bool of_configuration = route.metric == function::static_metric;
    table.add({route.prefix, route.kind, hops.empty() ? "-" : hops,
               of_configuration ? "static" : std::to_string(route.metric), route.protocol});
  }
  std::string out = table.str();
  if (routes.matching > routes.routes.size()) {
    out += fmt::format("{} of {} routes; --limit for more\n", routes.routes.size(), routes.matching);
  }
  return out;
}

std::string neighbours_report(const std::vector<control::NeighbourRow>& neighbours) {
  Table table({"ADDRESS", "MAC", "PORT"});
  for (const control::NeighbourRow& n : neighbours) table.add({n.address, n.mac, n.port});
  return table.str();
}

}  // namespace sluice::cli
