#include "control/gateway_snapshot.h"

#include <algorithm>
#include <cstdlib>

#include "device/name.h"

namespace sluice::control {
namespace {

constexpr unsigned max_reads = 16;

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

AwaySnapshot away_of(const char* thread, const engine::EngineStats::Away& away, double per_ns) {
  const auto ns = [&](std::uint64_t ticks) { return static_cast<std::uint64_t>(static_cast<double>(ticks) / per_ns); };
  return {thread, away.times, ns(away.ticks), ns(away.longest)};
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
  if (engine.gpu() != nullptr) {
    const device::GpuInfo& info = engine.gpu()->info();
    devices.push_back({device::gpu_name(info.index), info.name, stats.gpu_up ? "up" : "down",
                       total.batches_gpu - total.batches_rescued, total.frames_gpu - total.frames_rescued, 0, 0});
  }
  return devices;
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
  for (std::size_t i = 0; i < stats.lanes.size(); ++i) {
    const engine::EngineStats::Lane& lane = stats.lanes[i];
    LaneSnapshot one;
    one.index = static_cast<std::uint32_t>(i);
    one.port = engine.port_table()[lane.port].name;
    one.queue = lane.queue;
    one.core = lane.core;
    one.rx_frames = lane.rx_frames;
    one.rx_bytes = lane.rx_bytes;
    one.tx_frames = lane.tx_frames;
    one.tx_bytes = lane.tx_bytes;
    one.injected = lane.injected;
    one.punted = lane.punted;
    one.dropped = lane.dropped;
    one.in_flight = lane.in_flight;
    one.batches = lane.batches_cpu + lane.batches_gpu;
    one.sealed_full = lane.sealed_full;
    one.receive_stalls = lane.receive_stalls;
    one.misses = lane.misses;
    one.misses_away = lane.misses_away;
    snapshot.lanes.push_back(one);
  }
  for (std::size_t i = 0; i < stats.ports.size(); ++i) {
    const engine::EngineStats::Port& port = stats.ports[i];
    const port::PortOptions& described = engine.port(i).options();
    PortSnapshot one;
    one.index = static_cast<std::uint32_t>(i);
    one.name = described.name;
    one.device = described.device;
    one.twin = described.twin;
    one.mac = engine.port_table()[i].mac.str();
    one.mtu = described.mtu;
    one.link_up = port.device.link_up;
    one.interface_deleted = engine.port(i).interface_deleted();
    one.twin_deleted = engine.host_path().twin_deleted(i);
    one.rx_frames = port.rx_frames;
    one.rx_bytes = port.rx_bytes;
    one.tx_frames = port.tx_frames;
    one.tx_bytes = port.tx_bytes;
    one.missed = port.device.missed + port.device.no_memory;
    one.rx_errors = port.device.rx_errors;
    one.tx_errors = port.device.tx_errors;
    one.to_host_lost = port.host.to_host;
    one.from_host_lost = port.host.from_host;
    snapshot.ports.push_back(one);
  }
  for (unsigned reason = 1; reason < packet::reason_count(); ++reason) {
    if (stats.drops[reason] != 0) {
      snapshot.drops.push_back(
          {std::string(packet::reason_name(reason)), std::string(packet::reason_text(reason)), stats.drops[reason]});
    }
  }
  snapshot.devices = devices_of(engine, stats);
  snapshot.away.push_back(away_of("lanes", stats.lanes_away, engine.tsc_per_ns()));
  if (engine.gpu() != nullptr) {
    snapshot.away.push_back(away_of("worker", stats.worker_away, engine.tsc_per_ns()));
  }
  snapshot.latency = latency_of(stats.latency, engine.tsc_per_ns());
  return snapshot;
}

MirrorSnapshot mirror_snapshot(const MirrorStats& stats) {
  return {stats.prefixes, stats.routes,  stats.neighbours, stats.refused, stats.messages, stats.malformed,
          stats.overruns, stats.resyncs, stats.probes,     stats.unsent,  stats.refusals, stats.last_refusal};
}

RouteTable list_routes(const function::RouteTable& table, const engine::PortTable& ports, const RouteQuery& query) {
  RouteTable result;
  const auto routes =
      table.list([&](const packet::IpPrefix& prefix) { return query.matches(prefix); }, query.limit, result.matching);
  for (const function::Route& route : routes) {
    RouteRow row{route.prefix.str(), kind_name(route.kind), {}, route.metric, protocol_name(route.protocol)};
    for (const function::NextHop& hop : route.next_hops) {
      row.next_hops.push_back({hop.port < ports.size() ? ports[hop.port].name : "",
                               hop.gateway.empty() ? "" : hop.gateway.str(), hop.weight});
    }
    result.routes.push_back(std::move(row));
  }
  return result;
}

std::string needs_restart(const Config& running_config, const Config& wanted_config) {
  const engine::Options& running = running_config.engine;
  const engine::Options& wanted = wanted_config.engine;
  if (running.chain != wanted.chain) {
    return "[engine] chain";
  }
  if (running.device != wanted.device || running.deadline != wanted.deadline || running.cycle != wanted.cycle ||
      running.overlap != wanted.overlap || running.batch != wanted.batch || running.batches != wanted.batches ||
      running.streams != wanted.streams || running.poll != wanted.poll || running.scheduling != wanted.scheduling ||
      running.cores != wanted.cores || running.forwarder_cores != wanted.forwarder_cores ||
      running.worker_core != wanted.worker_core || running.mode != wanted.mode ||
      running.cpu_below != wanted.cpu_below || running_config.allow_busy_cores != wanted_config.allow_busy_cores) {
    return "[engine]";
  }
  if (running.memory != wanted.memory) {
    return "[memory]";
  }
  if (running_config.api.listen != wanted_config.api.listen ||
      running_config.api.allow_remote != wanted_config.api.allow_remote) {
    return "[api]";
  }
  if (running_config.log.level != wanted_config.log.level || running_config.log.file != wanted_config.log.file ||
      running_config.log.format != wanted_config.log.format) {
    return "[log]";
  }
  return running.ports == wanted.ports ? "" : "[[port]]";
}

}  // namespace sluice::control
