#include "control/gateway_snapshot.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "control/config_sections.h"
#include "control/function_metrics.h"
#include "control/section_views.h"
#include "device/name.h"
#include "engine/answers.h"
#include "engine/engine.h"
#include "port/virtual_device.h"

namespace sluice::control {
namespace {

constexpr unsigned max_reads = 16;

// Of all elements that there are.
std::set<packet::Reason> answered_reasons() {
  std::set<packet::Reason> reasons;
  for (const auto& [type, answers] : types_with<engine::Answers>()) {
    for (const packet::Reason reason : answers->answered()) reasons.insert(reason);
  }
  return reasons;
}

std::string protocol_name(std::uint32_t protocol) {
  switch (protocol) {  // RTPROT_*, linux/rtnetlink.h and FRR's
    case 2:
      return "kernel";
    case 3:
      return "boot";
    case 4:
      return "static";
    case 9:
      return "ra";
    case 12:
      return "bird";
    case 16:
      return "dhcp";
    case 186:
      return "bgp";
    case 187:
      return "isis";
    case 188:
      return "ospf";
    case 189:
      return "rip";
    case 196:
      return "static";
    default:
      return std::to_string(protocol);
  }
}

const char* kind_name(function::RouteKind kind) {
  switch (kind) {
    case function::RouteKind::unicast:
      return "unicast";
    case function::RouteKind::local:
      return "local";
    case function::RouteKind::blackhole:
      return "blackhole";
    case function::RouteKind::unreachable:
      return "unreachable";
  }
  return "unknown";
}

// From 1 µs to 4 s, each bound twice the one before.
constexpr unsigned first_bound_bits = 10;
constexpr unsigned last_bound_bits = 32;

LatencySnapshot latency_of(const engine::HistogramSnapshot& ticks, double per_ns) {
  const auto ns = [&](std::uint64_t value) { return static_cast<std::uint64_t>(static_cast<double>(value) / per_ns); };
  LatencySnapshot latency;
  latency.frames = ticks.total();
  latency.sum_ns = ns(ticks.sum());
  latency.p50_ns = ns(ticks.percentile(0.5));
  latency.p90_ns = ns(ticks.percentile(0.9));
  latency.p99_ns = ns(ticks.percentile(0.99));
  latency.p999_ns = ns(ticks.percentile(0.999));
  latency.max_ns = ns(ticks.max());
  for (unsigned bits = first_bound_bits; bits <= last_bound_bits; ++bits) {
    const std::uint64_t bound = 1ULL << bits;
    latency.buckets.push_back({bound, ticks.at_most(static_cast<std::uint64_t>(static_cast<double>(bound) * per_ns))});
  }
  return latency;
}

StallSnapshot stalls_of(const char* thread, const engine::EngineStats::Stalls& stalls, double per_ns) {
  const auto ns = [&](std::uint64_t ticks) { return static_cast<std::uint64_t>(static_cast<double>(ticks) / per_ns); };
  return {thread, stalls.times, ns(stalls.ticks), ns(stalls.longest)};
}

std::uint64_t ns_of(std::uint64_t ticks, const engine::Engine& engine) {
  return static_cast<std::uint64_t>(static_cast<double>(ticks) / engine.tsc_per_ns());
}

std::vector<DeviceSnapshot> devices_of(engine::Engine& engine, const engine::EngineStats& stats) {
  const engine::EngineStats::Lane& total = stats.total;
  std::vector<DeviceSnapshot> devices;
  DeviceSnapshot cpu{"cpu",
                     "the lanes' own cores",
                     "up",
                     total.batches_cpu,
                     total.frames_cpu,
                     total.batches_rescued,
                     total.frames_rescued};
  devices.push_back(cpu);
  for (std::size_t g = 0; g < engine.gpus().size(); ++g) {
    const device::GpuInfo& info = engine.gpus()[g]->info();
    DeviceSnapshot gpu{device::gpu_name(info.index), info.name, stats.gpus_up[g] ? "up" : "down"};
    gpu.batches = stats.gpus[g].batches;
    gpu.frames = stats.gpus[g].frames;
    gpu.frames_aside = engine.gpu_clock(g).frames_aside.load();
    gpu.longest_gap_ns = ns_of(engine.gpu_clock(g).longest_rescue.load(), engine);
    gpu.resets = engine.gpu_clock(g).resets.load();
    const engine::LossReport& loss = engine.gpu_loss(g);
    gpu.why = loss.why();
    gpu.since = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(loss.since().time_since_epoch()).count());
    devices.push_back(std::move(gpu));
  }
  return devices;
}

JobSnapshot jobs_of(const engine::JobCounters& counters) {
  return {std::string(counters.kind),
          counters.submitted,
          counters.completed,
          counters.late,
          counters.full,
          counters.too_late,
          counters.refused_stopped,
          counters.expired,
          counters.failed_stopped,
          counters.in_flight,
          counters.batches_gpu,
          counters.jobs_gpu,
          counters.batches_cpu,
          counters.jobs_cpu,
          counters.handed_over,
          counters.long_launches};
}

LaneSnapshot lane_of(const engine::EngineStats::Lane& lane, std::size_t index, const engine::Engine& engine) {
  LaneSnapshot one;
  one.index = static_cast<std::uint32_t>(index);
  one.port = engine.port_table()[lane.port].name;
  one.queue = lane.queue;
  one.core = lane.core;
  one.rx_frames = lane.rx_frames;
  one.rx_bytes = lane.rx_bytes;
  one.tx_frames = lane.tx_frames;
  one.tx_bytes = lane.tx_bytes;
  one.injected = lane.injected;
  one.emitted = lane.emitted;
  one.cloned = lane.cloned;
  one.consumed = lane.consumed;
  one.punted = lane.punted;
  one.dropped = lane.dropped;
  one.in_flight = lane.in_flight;
  one.batches = lane.batches_cpu + lane.batches_gpu;
  one.sealed_full = lane.sealed_full;
  one.receive_stalls = lane.receive_stalls;
  one.misses = lane.misses;
  one.misses_stalled = lane.misses_stalled;
  one.collecting_ns = ns_of(lane.collecting, engine);
  one.forwarding_ns = ns_of(lane.forwarding, engine);
  one.device = lane.on_device ? device::gpu_name(engine.gpus()[lane.device]->info().index) : "cpu";
  if (lane.choice) {
    one.chosen = engine::DeviceChoice::text(lane.choice->why);
    one.core_rate = lane.choice->core_rate;
    one.device_rate = lane.choice->device_rate;
    one.core_frame_ns = ns_of(lane.choice->core_cost / engine::FrameCost::scale, engine);
    one.device_changes = lane.choice->moves;
  }
  return one;
}

PortSnapshot port_of(engine::Engine& engine, const engine::EngineStats::Port& port, std::size_t index) {
  const port::PortOptions& described = engine.port(index).options();
  PortSnapshot one;
  one.index = static_cast<std::uint32_t>(index);
  one.name = described.name;
  one.device = described.device;
  one.twin = described.twin;
  one.mac = engine.port_table()[index].mac.str();
  one.mtu = described.mtu;
  one.interface_mtu = engine.port(index).carried_mtu();
  one.link_up = port.device.link_up;
  one.interface_deleted = engine.port(index).interface_deleted();
  one.twin_deleted = engine.host_path().twin_deleted(index);
  one.twin_down = engine.host_path().twin_down(index);
  one.rx_frames = port.rx_frames;
  one.rx_bytes = port.rx_bytes;
  one.tx_frames = port.tx_frames;
  one.tx_bytes = port.tx_bytes;
  one.missed = port.device.missed + port.device.no_memory;
  one.rx_errors = port.device.rx_errors;
  one.tx_errors = port.device.tx_errors;
  one.to_host_lost = port.host.to_host;
  one.from_host_lost = port.host.from_host;
  one.checksums_finished = port.device.checksums_finished;
  one.cut_up = port.device.cut_up;
  one.checksums_checked = port.device.checksums_checked;
  one.checksums_wrong = port.device.checksums_wrong;
  one.arrival_unseen = !port::unseen_arrival(described.device).empty();
  return one;
}

}  // namespace

bool read_consistent(const std::function<engine::EngineStats()>& read, std::size_t slack, engine::EngineStats& stats) {
  for (unsigned tries = 0; tries < max_reads; ++tries) {
    stats = read();
    if (std::abs(stats.imbalance()) <= static_cast<std::int64_t>(slack * stats.lanes.size())) {
      return true;
    }
  }
  return false;
}

Snapshot take_snapshot(engine::Engine& engine, const engine::Options& options) {
  Snapshot snapshot;
  engine::EngineStats stats;
  // While lanes run, a burst may be counted as received and not yet as anything else.
  snapshot.conserved =
      read_consistent([&] { return engine.stats(); }, engine.running() ? engine::burst_size : 0, stats);
  snapshot.version = SLUICE_VERSION;
  snapshot.chain = options.chain;
  snapshot.mode = mode_name(options.mode);
  snapshot.device = options.device;
  snapshot.deadline_ns = static_cast<std::uint64_t>(engine.timing().deadline.count());
  snapshot.bound_ns = static_cast<std::uint64_t>(engine.timing().bound.count());
  snapshot.cycle_ns = static_cast<std::uint64_t>(engine.timing().cycle.count());
  snapshot.overlap = engine.timing().overlap;
  snapshot.cycles = stats.cycles;
  snapshot.late_cycles = stats.late_cycles;
  snapshot.overruns = stats.overruns;
  snapshot.slow_launches = stats.slow_launches;
  snapshot.launches = stats.launches;
  snapshot.worker_busy_ns = ns_of(stats.launching, engine);
  for (std::size_t i = 0; i < stats.lanes.size(); ++i) {
    snapshot.lanes.push_back(lane_of(stats.lanes[i], i, engine));
  }
  for (std::size_t i = 0; i < stats.ports.size(); ++i) {
    snapshot.ports.push_back(port_of(engine, stats.ports[i], i));
  }
  const std::set<packet::Reason> answered = answered_reasons();
  for (unsigned reason = 1; reason < packet::reason_count(); ++reason) {
    const std::string name(packet::reason_name(reason));
    snapshot.drops.push_back({name, std::string(packet::reason_text(reason)), stats.drops[reason]});
    if (stats.answers[reason] != 0 || answered.contains(static_cast<packet::Reason>(reason))) {
      snapshot.icmp_errors.push_back({name, stats.answers[reason]});
    }
  }
  snapshot.metrics = element_metrics(engine.pipeline(), options.chain);
  snapshot.devices = devices_of(engine, stats);
  for (const engine::JobCounters& kind : stats.jobs) snapshot.jobs.push_back(jobs_of(kind));
  snapshot.stalls.push_back(stalls_of("lanes", stats.lanes_stalls, engine.tsc_per_ns()));
  if (engine.gpu() != nullptr) {
    snapshot.stalls.push_back(stalls_of("worker", stats.worker_stalls, engine.tsc_per_ns()));
  }
  if (!stats.helpers.empty()) {
    snapshot.stalls.push_back(stalls_of("helpers", stats.helpers_stalls, engine.tsc_per_ns()));
  }
  for (const engine::EngineStats::Helper& helper : stats.helpers) {
    snapshot.helpers.push_back({helper.core, helper.spans, helper.jobs, ns_of(helper.busy, engine)});
  }
  snapshot.latency = latency_of(stats.latency, engine.tsc_per_ns());
  return snapshot;
}

MirrorSnapshot mirror_snapshot(const MirrorStats& stats) {
  return {stats.prefixes,  stats.routes,       stats.neighbours, stats.refused, stats.messages,
          stats.malformed, stats.overruns,     stats.resyncs,    stats.probes,  stats.unsent,
          stats.refusals,  stats.last_refusal, stats.mended};
}

RouteTable list_routes(const function::RouteTable& table, const engine::PortTable& ports, const RouteQuery& query) {
  RouteTable result;
  const auto routes =
      table.list([&](const packet::IpPrefix& prefix) { return query.matches(prefix); }, query.limit, result.matching);
  std::set<std::pair<function::PortIndex, packet::IpAddress>> unresolved;
  for (const function::AdjacencyTable::Gateway& gateway : table.gateways()) {
    if (!gateway.resolved) unresolved.emplace(gateway.port, gateway.address);
  }
  for (const function::Route& route : routes) {
    RouteRow row{route.prefix.str(), kind_name(route.kind), {}, route.metric, protocol_name(route.protocol)};
    for (const function::NextHop& hop : route.next_hops) {
      const bool on_link = hop.port < ports.size();
      row.next_hops.push_back({on_link ? ports[hop.port].name : "", hop.gateway.empty() ? "" : hop.gateway.str(),
                               hop.weight, on_link && !unresolved.contains({hop.port, hop.gateway})});
    }
    result.routes.push_back(std::move(row));
  }
  return result;
}

namespace {

class Differences {
 public:
  void compare(const std::string& setting, const auto& running, const auto& wanted) {
    if (!(running == wanted)) {
      add(setting + " cannot change");
    }
  }
  void add(const std::string& line) {
    lines_ += (lines_.empty() ? "" : "\n") + line + " while the gateway runs: restart it";
  }
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

template <class T>
void compare_settings(const std::string& section, const std::vector<Option<T>>& settings, const T& running,
                      const T& wanted, Differences& differences) {
  for (const std::string& key : option::differing(settings, running, wanted)) {
    differences.add(section + " " + key + " cannot change");
  }
}

void compare_engine(const engine::Options& running, const engine::Options& wanted, Differences& differences) {
  for (const std::string& key : option::differing(engine_settings(), running, wanted)) {
    // Of two ways to say the same, or of another chain, neither is a change.
    const bool is_none =
        key == "stagger" && (running.chain != wanted.chain || engine::staggers(running) == engine::staggers(wanted));
    if (!is_none) differences.add("[engine] " + key + " cannot change");
  }
}

void compare_ports(const std::vector<port::PortOptions>& running, const std::vector<port::PortOptions>& wanted,
                   Differences& differences) {
  for (std::size_t i = 0; i < std::max(running.size(), wanted.size()); ++i) {
    if (i >= running.size()) {
      differences.add("[[port]] '" + wanted[i].name + "' cannot be added");
    } else if (i >= wanted.size()) {
      differences.add("[[port]] '" + running[i].name + "' cannot be taken out");
    } else {
      compare_settings("[[port]] '" + wanted[i].name + "'", port_settings(), running[i], wanted[i], differences);
    }
  }
}

}  // namespace

std::string needs_restart(const Config& running, const Config& wanted) {
  Differences differences;
  compare_settings("[plugins]", plugin_settings(), running.plugins, wanted.plugins, differences);
  compare_engine(running.engine, wanted.engine, differences);
  compare_settings("[memory]", memory_settings(), running.engine.memory, wanted.engine.memory, differences);
  compare_ports(running.engine.ports, wanted.engine.ports, differences);
  compare_settings("[profile]", profile_settings(), running.profile, wanted.profile, differences);
  const auto text_of = [](const ProfileOptions& of) { return of.profile ? of.profile->text() : std::string(); };
  if (running.profile.file == wanted.profile.file && text_of(running.profile) != text_of(wanted.profile)) {
    differences.add("[profile] file: what " + wanted.profile.file + " says cannot change");
  }
  compare_settings("[api]", api_settings(), running.api, wanted.api, differences);
  compare_settings("[log]", log_settings(), running.log, wanted.log, differences);
  return differences.lines();
}

}  // namespace sluice::control
