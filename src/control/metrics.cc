#include "control/metrics.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/name.h"
#include "base/quote.h"
#include "control/function_metrics.h"
#include "control/health.h"

namespace sluice::control {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string escaped(std::string_view value) {
  std::string result;
  for (const char c : value) {
    if (c == '\\' || c == '"') result.push_back('\\');
    result.append(c == '\n' ? "\\n" : std::string(1, c));
  }
  return result;
}

// Without line breaks, which end a HELP.
std::string escaped_help(std::string_view text) {
  std::string result;
  for (const char c : text) result.append(c == '\\' ? "\\\\" : c == '\n' ? "\\n" : std::string(1, c));
  return result;
}

class Exposition {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    taken_.insert(name_);
    fmt::format_to(std::back_inserter(text_), "# HELP sluice_{0} {1}\n# TYPE sluice_{0} {2}\n", name,
                   escaped_help(help), type);
  }
  // Whether a family or a sample has that name already.
  bool has(const std::string& name) const { return taken_.contains(name); }
  template <typename T>
  void sample(const Labels& labels, T value, std::string_view suffix = "") {
    fmt::format_to(std::back_inserter(text_), "sluice_{}{}", name_, suffix);
    if (!suffix.empty()) taken_.insert(name_ + std::string(suffix));
    char separator = '{';
    for (const auto& [label, text] : labels) {
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", separator, label, escaped(text));
      separator = ',';
    }
    fmt::format_to(std::back_inserter(text_), "{} {}\n", labels.empty() ? "" : "}", value);
  }
  template <typename T>
  void single(std::string_view name, std::string_view type, std::string_view help, T value) {
    family(name, type, help);
    sample({}, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
  std::set<std::string> taken_;
};

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

void engine_metrics(Exposition& out, const Snapshot& s) {
  out.family("build_info", "gauge", "Always 1; labels say what runs");
  out.sample({{"version", s.version},
              {"chain", fmt::format("{}", fmt::join(s.chain, ","))},
              {"mode", s.mode},
              {"device", s.device}},
             1);
  out.single("uptime_seconds", "gauge", "Time since start", seconds(s.uptime_ns));
  out.family("reloads_total", "counter", "Reloads of the configuration, by what came of them");
  out.sample({{"result", "done"}}, s.reloads_done);
  out.sample({{"result", "refused"}}, s.reloads_refused);
  out.single("deadline_seconds", "gauge", "The chain's deadline for every frame", seconds(s.deadline_ns));
  out.single("bound_seconds", "gauge", "Worst case of a frame in this configuration; 0: no cycle", seconds(s.bound_ns));
  out.single("cycle_seconds", "gauge", "Length of a cycle; 0: each lane computes at once", seconds(s.cycle_ns));
  out.single("cycles_total", "counter", "Cycles of the device's worker", s.cycles);
  out.single("late_cycles_total", "counter", "Cycles that began late", s.late_cycles);
  out.single("launches_total", "counter", "Launches on the GPU, of one batch or several", s.launches);
  out.single("worker_busy_seconds_total", "counter",
             "Time in which the device's worker launched or handed back batches", seconds(s.worker_busy_ns));
  out.single("slow_launches_total", "counter", "Calls of the GPU's driver that took over 50 us", s.slow_launches);
  out.single("cycle_overruns_total", "counter",
             "Batches that took longer than their cycles from sealing to being handed back", s.overruns);
  out.single("conserved", "gauge", "1: every frame received is transmitted, punted, dropped by name or in flight",
             s.conserved ? 1 : 0);
  out.family("routes", "gauge", "Routes in the table, by IP version");
  out.sample({{"family", "ipv4"}}, s.routes.ipv4);
  out.sample({{"family", "ipv6"}}, s.routes.ipv6);
  out.single("neighbours", "gauge", "Neighbours with a known MAC address", s.routes.neighbours);
}

// Every check, so that an alert can be written before the first time that it finds something.
void health_metrics(Exposition& out, const Snapshot& s) {
  std::map<std::string_view, std::uint64_t> found;
  for (const Ailment& one : find_ailments(s)) ++found[one.check];
  out.single("healthy", "gauge", "1: nothing is wrong, as /readyz says", found.empty() ? 1 : 0);
  out.family("ailments", "gauge", "What is wrong now, by check: of how many ports, files or devices");
  for (const HealthCheck& check : health_checks()) out.sample({{"check", std::string(check.name)}}, found[check.name]);
}

void mirror_metrics(Exposition& out, const MirrorSnapshot& m) {
  out.single("mirror_prefixes", "gauge", "Prefixes in the kernel's tables", m.prefixes);
  out.single("mirror_routes", "gauge", "Routes of the kernel that are in force here", m.routes);
  out.single("mirror_neighbours", "gauge", "Neighbours of the kernel that are in force here", m.neighbours);
  out.single("mirror_refused", "gauge", "Routes and neighbours of the kernel that have no capacity here now",
             m.refused);
  out.single("mirror_messages_total", "counter", "Messages of the kernel, dumps included", m.messages);
  out.single("mirror_malformed_total", "counter", "Messages passed over that are not as rtnetlink says", m.malformed);
  out.single("mirror_overruns_total", "counter", "Times that the kernel dropped notifications", m.overruns);
  out.single("mirror_resyncs_total", "counter", "Full comparisons after the first", m.resyncs);
  out.single("mirror_mended_total", "counter", "Routes and neighbours that comparisons found changed without a message",
             m.mended);
  out.single("mirror_probes_total", "counter", "Stale neighbours that the kernel was asked to verify", m.probes);
  out.single("mirror_unsent_total", "counter", "Probes and requests that the kernel did not take, to be sent again",
             m.unsent);
  out.single("mirror_refusals_total", "counter", "Changes of routes and neighbours that found no capacity", m.refusals);
}

void loading_metrics(Exposition& out, const LoadingSnapshot& loading) {
  out.single("loading", "gauge", "1: a table is being loaded", loading.what.empty() ? 0 : 1);
  out.single("loading_done", "gauge", "Entries of it that are loaded", loading.done);
  out.single("loading_entries", "gauge", "Entries to load; 0: not known, or none", loading.total);
}

template <typename Row, typename Describe>
void by_row(Exposition& out, std::string_view name, std::string_view type, std::string_view help,
            const std::vector<Row>& rows, std::uint64_t Row::*field, Describe labels) {
  if (rows.empty()) return;
  out.family(name, type, help);
  for (const Row& row : rows) out.sample(labels(row), row.*field);
}

// Where lanes compute, and what they go by if they may choose.
template <typename Describe>
void choice_metrics(Exposition& out, const Snapshot& s, const Describe& labels) {
  out.family("lane_device_info", "gauge", "Where a lane's batches are computed now");
  for (const LaneSnapshot& lane : s.lanes) {
    Labels of = labels(lane);
    of.emplace_back("device", lane.device);
    of.emplace_back("why", lane.chosen);
    out.sample(of, std::uint64_t{1});
  }
  by_row(out, "lane_device_changes_total", "counter", "Times that a lane went from its core to a GPU or back", s.lanes,
         &LaneSnapshot::device_changes, labels);
  by_row(out, "lane_core_frames_per_second", "gauge",
         "What a lane's core carried when it was saturated last; 0: it was not", s.lanes, &LaneSnapshot::core_rate,
         labels);
  by_row(out, "lane_gpu_frames_per_second", "gauge",
         "What a lane's GPU carried for it when it was saturated last; 0: it was not", s.lanes,
         &LaneSnapshot::device_rate, labels);
  out.family("lane_core_frame_seconds", "gauge",
             "What a frame takes the lane's core, by probes while the GPU has the others; 0: there was none");
  for (const LaneSnapshot& lane : s.lanes) out.sample(labels(lane), seconds(lane.core_frame_ns));
}

void lane_metrics(Exposition& out, const Snapshot& s) {
  const auto labels = [](const LaneSnapshot& lane) {
    return Labels{{"lane", std::to_string(lane.index)}, {"port", lane.port}, {"queue", std::to_string(lane.queue)}};
  };
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t LaneSnapshot::*field) {
    by_row(out, name, "counter", help, s.lanes, field, labels);
  };
  counter("lane_receive_frames_total", "Frames that a lane received", &LaneSnapshot::rx_frames);
  counter("lane_receive_bytes_total", "Bytes that a lane received", &LaneSnapshot::rx_bytes);
  counter("lane_transmit_frames_total", "Frames that a lane transmitted", &LaneSnapshot::tx_frames);
  counter("lane_transmit_bytes_total", "Bytes that a lane transmitted", &LaneSnapshot::tx_bytes);
  counter("lane_injected_frames_total", "Frames from the host, to be transmitted", &LaneSnapshot::injected);
  counter("lane_emitted_frames_total", "Frames that elements made besides what was received", &LaneSnapshot::emitted);
  counter("lane_cloned_frames_total", "Copies of frames that elements sent", &LaneSnapshot::cloned);
  counter("lane_consumed_frames_total", "Frames that elements took over", &LaneSnapshot::consumed);
  counter("lane_punted_frames_total", "Frames handed to the host", &LaneSnapshot::punted);
  counter("lane_dropped_frames_total", "Frames dropped, for all reasons", &LaneSnapshot::dropped);
  counter("lane_batches_total", "Batches that a lane collected", &LaneSnapshot::batches);
  counter("lane_full_batches_total", "Batches handed on before the time point because they were full",
          &LaneSnapshot::sealed_full);
  counter("lane_receive_stalls_total", "Polls that could not receive because every batch was in use",
          &LaneSnapshot::receive_stalls);
  counter("lane_deadline_misses_total", "Frames transmitted after their deadline", &LaneSnapshot::misses);
  counter("lane_deadline_misses_stalled_total",
          "Of these, frames that would have been on time if the machine had let the threads run",
          &LaneSnapshot::misses_stalled);
  out.family("lane_busy_seconds_total", "counter",
             "Time that a lane's threads have worked, without polls that found nothing");
  for (const LaneSnapshot& lane : s.lanes) {
    for (const auto& [side, ns] :
         {std::pair{"collect", lane.collecting_ns}, std::pair{"forward", lane.forwarding_ns}}) {
      Labels of = labels(lane);
      of.emplace_back("side", side);
      out.sample(of, seconds(ns));
    }
  }
  by_row(out, "lane_in_flight_frames", "gauge", "Frames inside a lane", s.lanes, &LaneSnapshot::in_flight, labels);
  choice_metrics(out, s, labels);
}

void port_metrics(Exposition& out, const Snapshot& s) {
  const auto labels = [](const PortSnapshot& port) { return Labels{{"port", port.name}}; };
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t PortSnapshot::*field) {
    by_row(out, name, "counter", help, s.ports, field, labels);
  };
  counter("port_receive_frames_total", "Frames received by a port", &PortSnapshot::rx_frames);
  counter("port_receive_bytes_total", "Bytes received by a port", &PortSnapshot::rx_bytes);
  counter("port_transmit_frames_total", "Frames transmitted by a port", &PortSnapshot::tx_frames);
  counter("port_transmit_bytes_total", "Bytes transmitted by a port", &PortSnapshot::tx_bytes);
  counter("port_missed_frames_total", "Frames lost by the device before receive", &PortSnapshot::missed);
  counter("port_receive_errors_total", "Frames that the device received with an error", &PortSnapshot::rx_errors);
  counter("port_transmit_errors_total", "Transmitted frames that the driver took and failed to send",
          &PortSnapshot::tx_errors);
  counter("port_to_host_lost_frames_total", "Frames for the host that the port's twin did not take",
          &PortSnapshot::to_host_lost);
  counter("port_from_host_lost_frames_total", "Frames from the host that the port's lane did not take",
          &PortSnapshot::from_host_lost);
  counter("port_checksums_finished_total",
          "Received frames whose checksum their sender had left to a network card that was not there",
          &PortSnapshot::checksums_finished);
  counter("port_cut_up_packets_total", "Received packets longer than the MTU that were cut up into frames",
          &PortSnapshot::cut_up);
  counter(
      "port_checksums_checked_total",
      "Received TCP and UDP frames whose checksum was looked at, where the driver does not say which are unfinished",
      &PortSnapshot::checksums_checked);
  counter("port_checksums_wrong_total", "Of these, frames with a wrong checksum", &PortSnapshot::checksums_wrong);
  if (s.ports.empty()) return;
  out.family("port_up", "gauge", "1: the link is up");
  for (const PortSnapshot& port : s.ports) out.sample(labels(port), port.link_up ? 1 : 0);
  const auto has_twin = [](const PortSnapshot& port) { return !port.twin.empty(); };
  if (std::ranges::none_of(s.ports, has_twin)) return;
  out.family("port_twin_up", "gauge", "1: the port's twin is there, and nobody has set it down");
  for (const PortSnapshot& port : s.ports) {
    if (has_twin(port)) out.sample(labels(port), port.twin_deleted || port.twin_down ? 0 : 1);
  }
}

void job_metrics(Exposition& out, const Snapshot& s) {
  const auto labels = [](const JobSnapshot& jobs) { return Labels{{"kind", jobs.kind}}; };
  by_row(out, "jobs_submitted_total", "counter", "Jobs that functions submitted", s.jobs, &JobSnapshot::submitted,
         labels);
  by_row(out, "jobs_late_total", "counter", "Jobs completed after their deadline", s.jobs, &JobSnapshot::late, labels);
  by_row(out, "jobs_in_flight", "gauge", "Jobs accepted that are not back", s.jobs, &JobSnapshot::in_flight, labels);
  by_row(out, "jobs_handed_over_total", "counter", "Jobs that a GPU which failed left to the cores", s.jobs,
         &JobSnapshot::handed_over, labels);
  by_row(out, "jobs_long_launches_total", "counter", "Launches of jobs that took a GPU longer than their slice", s.jobs,
         &JobSnapshot::long_launches, labels);
  if (s.jobs.empty()) return;
  using Part = std::pair<const char*, std::uint64_t JobSnapshot::*>;
  const auto parts = [&](std::string_view name, std::string_view help, const char* label,
                         std::initializer_list<Part> all) {
    out.family(name, "counter", help);
    for (const JobSnapshot& jobs : s.jobs) {
      for (const auto& [value, field] : all) out.sample({{"kind", jobs.kind}, {label, value}}, jobs.*field);
    }
  };
  parts("jobs_ended_total", "What became of jobs; late ones are completed, too", "outcome",
        {{"completed", &JobSnapshot::completed},
         {"refused_full", &JobSnapshot::full},
         {"refused_too_late", &JobSnapshot::too_late},
         {"refused_stopped", &JobSnapshot::refused_stopped},
         {"expired", &JobSnapshot::expired},
         {"stopped", &JobSnapshot::failed_stopped}});
  parts("jobs_done_total", "Jobs done, by side", "side",
        {{"cpu", &JobSnapshot::jobs_cpu}, {"gpu", &JobSnapshot::jobs_gpu}});
  parts("job_batches_total", "Batches of jobs done, by side", "side",
        {{"cpu", &JobSnapshot::batches_cpu}, {"gpu", &JobSnapshot::batches_gpu}});
}

void helper_metrics(Exposition& out, const Snapshot& s) {
  const auto labels = [](const HelperSnapshot& helper) { return Labels{{"core", std::to_string(helper.core)}}; };
  by_row(out, "compute_core_spans_total", "counter", "Parts of batches that a core of compute_cores has computed",
         s.helpers, &HelperSnapshot::spans, labels);
  by_row(out, "compute_core_jobs_total", "counter", "Jobs of these, such as packets", s.helpers, &HelperSnapshot::jobs,
         labels);
  if (s.helpers.empty()) return;
  out.family("compute_core_busy_seconds_total", "counter", "Time that a core of compute_cores has computed");
  for (const HelperSnapshot& helper : s.helpers) out.sample(labels(helper), seconds(helper.busy_ns));
}

void stall_metrics(Exposition& out, const Snapshot& s) {
  const auto labels = [](const StallSnapshot& stalls) { return Labels{{"thread", stalls.thread}}; };
  by_row(out, "scheduling_stalls_total", "counter",
         "Times that threads were surely kept from running, for over 50 us outside computing and driver calls",
         s.stalls, &StallSnapshot::times, labels);
  if (s.stalls.empty()) return;
  out.family("scheduling_stall_seconds_total", "counter", "Time that threads were kept from running");
  for (const StallSnapshot& stalls : s.stalls) out.sample(labels(stalls), static_cast<double>(stalls.sum_ns) / 1e9);
  out.family("scheduling_stall_longest_seconds", "gauge", "The longest time that a thread was kept from running");
  for (const StallSnapshot& stalls : s.stalls) out.sample(labels(stalls), static_cast<double>(stalls.longest_ns) / 1e9);
}

void device_metrics(Exposition& out, const Snapshot& s) {
  const auto labels = [](const DeviceSnapshot& device) { return Labels{{"device", device.name}}; };
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t DeviceSnapshot::*field) {
    by_row(out, name, "counter", help, s.devices, field, labels);
  };
  counter("device_batches_total", "Batches that a device computed", &DeviceSnapshot::batches);
  counter("device_frames_total", "Frames that a device computed", &DeviceSnapshot::frames);
  counter("device_resets_total", "Times that a device was lost and came back", &DeviceSnapshot::resets);
  counter("device_rescued_frames_total", "Frames computed here because another device failed",
          &DeviceSnapshot::rescued_frames);
  if (!s.devices.empty()) {
    out.family("device_up", "gauge", "1: the device is in use; 0: it failed");
    for (const DeviceSnapshot& device : s.devices) out.sample(labels(device), device.state == "up" ? 1 : 0);
    out.family("device_down_since_seconds", "gauge", "When the device failed, as Unix time; 0: it has not");
    for (const DeviceSnapshot& device : s.devices) out.sample(labels(device), static_cast<double>(device.since));
    out.family("device_longest_gap_seconds", "gauge",
               "The longest that a batch of a device that failed waited until a core had computed it");
    for (const DeviceSnapshot& device : s.devices) {
      out.sample(labels(device), static_cast<double>(device.longest_gap_ns) / 1e9);
    }
    out.family("device_frames_aside", "gauge",
               "Frame buffers that are not used because a device that does not answer may still write to them");
    for (const DeviceSnapshot& device : s.devices) {
      out.sample(labels(device), static_cast<double>(device.frames_aside));
    }
  }
  by_row(out, "drops_total", "counter", "Frames dropped, by reason", s.drops, &DropSnapshot::frames,
         [](const DropSnapshot& drop) {
           return Labels{{"reason", drop.reason}};
         });
  by_row(out, "icmp_errors_total", "counter",
         "Frames that the gateway itself answered, by an ICMP error or an RST, by why", s.icmp_errors,
         &IcmpErrorSnapshot::frames, [](const IcmpErrorSnapshot& error) {
           return Labels{{"reason", error.reason}};
         });
}

// A metric's unit, as its name ends, in the base unit that Prometheus' names have.
struct BaseUnit {
  std::string_view ending, base, said, base_said;
  double divisor;
};
constexpr BaseUnit base_units[] = {{"_ns", "_seconds", "in nanoseconds", "in seconds", 1e9},
                                   {"_us", "_seconds", "in microseconds", "in seconds", 1e6},
                                   {"_ms", "_seconds", "in milliseconds", "in seconds", 1e3},
                                   {"_bits", "_bytes", "bits", "bytes", 8}};

// Behind all others: what has the name of one of those is left out.
void function_metrics(Exposition& out, const Snapshot& s) {
  for (const MetricSnapshot& metric : s.metrics) {
    std::string name = metric.name;
    std::string help = metric.text;
    double divisor = 1;
    for (const BaseUnit& unit : base_units) {
      if (!name.ends_with(unit.ending)) continue;
      name.replace(name.size() - unit.ending.size(), unit.ending.size(), unit.base);
      if (const std::size_t at = help.find(unit.said); at != std::string::npos) {
        help.replace(at, unit.said.size(), unit.base_said);
      }
      divisor = unit.divisor;
    }
    if (!help.empty()) help[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(help[0])));
    name += metric.counts ? "_total" : "";
    // The whole scrape would be refused for it.
    if (!is_name(name) || out.has(name)) {
      const std::string left_out = "/metrics: the metric " + in_quotes(metric.name) + " is left out: ";
      warn_once(left_out + (is_name(name) ? "there is another sluice_" + name + " already" : std::string(name_rule)),
                left_out);
      continue;
    }
    const char* const type = metric.counts ? "counter" : "gauge";
    if (divisor == 1) {
      out.single(name, type, help, metric.value);
    } else {
      out.single(name, type, help, static_cast<double>(metric.value) / divisor);
    }
  }
}

void latency_metrics(Exposition& out, const LatencySnapshot& latency) {
  out.family("latency_seconds", "histogram",
             "From the receive burst to the transmit burst, of every transmitted frame");
  for (const LatencyBucket& bucket : latency.buckets) {
    out.sample({{"le", fmt::format("{}", seconds(bucket.at_most_ns))}}, bucket.frames, "_bucket");
  }
  out.sample({{"le", "+Inf"}}, latency.frames, "_bucket");
  out.sample({}, seconds(latency.sum_ns), "_sum");
  out.sample({}, latency.frames, "_count");
  out.family("latency_quantile_seconds", "summary", "Latency that this share of all frames since start did not exceed");
  const std::pair<const char*, std::uint64_t> quantiles[] = {{"0.5", latency.p50_ns},
                                                             {"0.9", latency.p90_ns},
                                                             {"0.99", latency.p99_ns},
                                                             {"0.999", latency.p999_ns},
                                                             {"1", latency.max_ns}};
  for (const auto& [quantile, ns] : quantiles) out.sample({{"quantile", quantile}}, seconds(ns));
  out.sample({}, seconds(latency.sum_ns), "_sum");
  out.sample({}, latency.frames, "_count");
}

}  // namespace

std::string metrics_text(const Snapshot& snapshot) {
  Exposition out;
  engine_metrics(out, snapshot);
  health_metrics(out, snapshot);
  mirror_metrics(out, snapshot.mirror);
  loading_metrics(out, snapshot.loading);
  lane_metrics(out, snapshot);
  port_metrics(out, snapshot);
  helper_metrics(out, snapshot);
  stall_metrics(out, snapshot);
  device_metrics(out, snapshot);
  job_metrics(out, snapshot);
  latency_metrics(out, snapshot.latency);
  function_metrics(out, snapshot);
  return out.take();
}

}  // namespace sluice::control
