#include "engine/engine.h"

#include <rte_cycles.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace sluice::engine {
namespace {

constexpr unsigned most_lanes_of_a_port = 64;

std::string us(std::chrono::nanoseconds time) {
  const double value = static_cast<double>(time.count()) / 1000.0;
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 2) + " us";
}

Expected<int> gpu_index(const std::string& device) {
  if (device == "auto") {
    return 0;
  }
  int index = -1;
  if (device.rfind("cuda:", 0) == 0) {
    const auto [end, ec] = std::from_chars(device.data() + 5, device.data() + device.size(), index);
    if (ec != std::errc() || end != device.data() + device.size()) {
      index = -1;
    }
  }
  if (index < 0) {
    return make_error("[engine] device = \"" + device + "\": the devices are \"auto\", \"cpu\" and \"cuda:N\"");
  }
  return index;
}

}  // namespace

void EngineStats::Away::add(const AwayWatch& watch) {
  times += watch.times();
  ticks += watch.ticks();
  longest = std::max(longest, watch.longest());
}

std::int64_t EngineStats::imbalance() const {
  return static_cast<std::int64_t>(total.rx_frames + total.injected) -
         static_cast<std::int64_t>(total.tx_frames + total.punted + total.dropped + total.in_flight);
}

Expected<std::unique_ptr<Engine>> Engine::create(const Options& options, const FunctionMaker& make_function,
                                                 const GpuOpener& open_gpu) {
  std::unique_ptr<Engine> engine(new Engine());
  engine->options_ = options;
  engine->tsc_per_ns_ = static_cast<double>(rte_get_tsc_hz()) / 1e9;

  Expected<void> step = engine->open_device(open_gpu);
  step = step ? engine->open_ports() : step;
  if (!step) {
    return tl::unexpected(step.error());
  }
  auto function = make_function(engine->port_table_);
  if (!function) {
    return tl::unexpected(function.error());
  }
  engine->function_ = std::move(*function);
  step = engine->function_->prepare();
  step = step ? engine->build_lanes() : step;
  step = step ? engine->attach_device() : step;
  if (!step) {
    return tl::unexpected(step.error());
  }
  return engine;
}

Expected<void> Engine::open_device(const GpuOpener& open_gpu) {
  if (options_.device != "cpu") {
    auto index = gpu_index(options_.device);
    if (!index) {
      return tl::unexpected(index.error());
    }
    auto gpu = open_gpu(*index, options_.streams);
    if (gpu) {
      gpu_ = std::move(*gpu);
    } else if (options_.device != "auto") {
      return make_error("[engine] device = \"" + options_.device + "\": " + gpu.error().message);
    } else {
      notes_.push_back("device: CPU, because " + gpu.error().message);
    }
  }
  if (gpu_) {
    auto timing = plan_timing(options_.deadline, options_.cycle, options_.overlap);
    if (!timing) {
      return tl::unexpected(timing.error());
    }
    timing_ = *timing;
    notes_.push_back("device: " + gpu_->info().name + " (cuda:" + std::to_string(gpu_->info().index) + ", PCI " +
                     gpu_->info().pci + ", " + std::to_string(gpu_->info().multiprocessors) + " SMs, " +
                     std::to_string(options_.streams) + " streams)");
    notes_.push_back("cycle " + us(timing_.cycle) + ", overlap " + std::to_string(timing_.overlap) + ", bound (2 + " +
                     std::to_string(timing_.overlap) + ")*I + " + us(collect_time) + " = " + us(timing_.bound) +
                     ", deadline " + us(timing_.deadline));
  } else {
    if (options_.device == "cpu") {
      notes_.emplace_back("device: CPU");
    }
    timing_ = {std::chrono::nanoseconds(0), std::chrono::nanoseconds(0), options_.deadline, options_.overlap};
    notes_.push_back("no cycle: each lane computes on its own core, run to completion, at most " +
                     std::to_string(inline_batch) + " frames at a time; deadline " + us(options_.deadline));
  }
  return {};
}

Expected<void> Engine::open_ports() {
  unsigned lanes = 0;
  for (const PortOptions& port : options_.ports) {
    if (port.lane_count() < port.queues || port.lane_count() > most_lanes_of_a_port) {
      return make_error("[[port]] '" + port.name + "': lanes = " + std::to_string(port.lane_count()) + ", and it has " +
                        std::to_string(port.queues) + " queues: allowed is as many or more, up to " +
                        std::to_string(most_lanes_of_a_port));
    }
    lanes += port.lane_count();
  }
  if (lanes == 0) {
    return make_error("there is no [[port]]: a gateway needs at least one");
  }
  if (options_.ports.size() > max_ports) {
    return make_error("there are " + std::to_string(options_.ports.size()) + " ports; " + std::to_string(max_ports) +
                      " is the most");
  }
  unsigned threads_limit =
      options_.forwarder_cores.empty() ? lanes : static_cast<unsigned>(options_.forwarder_cores.size());
  for (const PortOptions& options : options_.ports) {
    // Each lane holds frames in its batches.
    MemoryOptions memory = options_.memory;
    memory.frames *= (options.lane_count() + options.queues - 1) / options.queues;
    auto port = port::Port::open(options, memory, threads_limit);
    if (!port) {
      return tl::unexpected(port.error());
    }
    threads_limit = std::min(threads_limit, (*port)->tx_queue_count());
    ports_.push_back(std::move(*port));
  }
  if (auto placed = place_threads(threads_limit); !placed) {
    return placed;
  }

  auto host_path = HostPath::create(ports_, options_.memory.frame_bytes);
  if (!host_path) {
    return tl::unexpected(host_path.error());
  }
  host_path_ = std::move(*host_path);
  notes_.insert(notes_.end(), host_path_->notes().begin(), host_path_->notes().end());

  std::vector<PortInfo> infos;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const PortOptions& options = ports_[i]->options();
    PortInfo info{options.name, ports_[i]->mac(), options.mtu, static_cast<std::uint16_t>(i), !options.twin.empty()};
    if (!options.peer.empty()) {
      for (std::size_t p = 0; p < ports_.size(); ++p) {
        if (ports_[p]->name() == options.peer) {
          info.peer = static_cast<std::uint16_t>(p);
        }
      }
    } else if (ports_.size() == 2) {
      info.peer = static_cast<std::uint16_t>(1 - i);
    }
    notes_.push_back("port " + options.name + ": " + options.device + " (" + ports_[i]->driver() + "), MAC " +
                     info.mac.str() + ", " + std::to_string(options.queues) + " queue(s)" +
                     (options.lane_count() == options.queues
                          ? std::string()
                          : " spread over " + std::to_string(options.lane_count()) + " lanes by flow hash") +
                     (options.twin.empty() ? "" : ", twin " + options.twin));
    infos.push_back(std::move(info));
  }
  port_table_ = PortTable(std::move(infos));
  return {};
}

Expected<void> Engine::place_threads(unsigned threads_limit) {
  Demand demand{{}, threads_limit, gpu_ != nullptr, gpu_ ? gpu_->info().numa_node : -1};
  for (const auto& port : ports_) {
    demand.ports.push_back({port->name(), port->numa_node(), port->options().lane_count()});
  }
  auto placement = place(options_, this_machine(), demand);
  if (!placement) {
    return tl::unexpected(placement.error());
  }
  placement_ = std::move(*placement);
  notes_.insert(notes_.end(), placement_.notes.begin(), placement_.notes.end());
  return {};
}

Expected<void> Engine::build_lanes() {
  const DeviceMemory memory = [this](std::size_t bytes) -> Expected<void*> {
    if (gpu_) {
      return gpu_->allocate_host(bytes);
    }
    void* base = std::aligned_alloc(64, bytes);
    if (base == nullptr) {
      return make_error("out of memory for batches: lower [engine] batch or batches");
    }
    std::memset(base, 0, bytes);
    host_memory_.push_back(base);
    return base;
  };

  std::vector<port::Port*> ports;
  for (const auto& port : ports_) {
    ports.push_back(port.get());
  }
  std::uint32_t cpu_below = options_.cpu_below >= 0 ? static_cast<std::uint32_t>(options_.cpu_below) : inline_batch;
  for (const int core : placement_.lane_cores) {
    threads_.push_back(std::make_unique<LaneThread>(core, placement_.busy, placement_.scheduling));
  }
  for (const int core : placement_.forwarder_cores) {
    threads_.push_back(std::make_unique<LaneThread>(core, placement_.busy, placement_.scheduling));
  }
  const std::size_t collectors = placement_.lane_cores.size();
  const bool separate = !placement_.forwarder_cores.empty();
  const std::size_t forwarders = separate ? placement_.forwarder_cores.size() : collectors;
  std::size_t bytes = 0;
  for (std::uint16_t p = 0; p < ports_.size(); ++p) {
    const PortOptions& options = ports_[p]->options();
    const std::size_t first = lanes_.size();
    for (std::uint16_t l = 0; l < options.lane_count(); ++l) {
      const auto index = static_cast<std::uint32_t>(lanes_.size());
      const bool shares_queue = l >= options.queues;
      auto ring = BatchRing::create(
          {index, options_.batches, options_.batch, function_->layout().extra_bytes_per_frame}, memory);
      auto inbox = shares_queue ? FlowInbox::make("inbox-" + std::to_string(index)) : FlowInbox();
      if (!ring || !inbox) {
        return tl::unexpected(!ring ? ring.error() : inbox.error());
      }
      bytes += (*ring)->bytes();
      Lane::Parts parts{index,
                        p,
                        static_cast<std::uint16_t>(l % options.queues),
                        ports,
                        static_cast<std::uint16_t>(index % forwarders),
                        host_path_->host_ports(),
                        l == 0,
                        function_.get(),
                        &clock_,
                        options_.mode,
                        cpu_below,
                        static_cast<std::uint64_t>(static_cast<double>(options_.deadline.count()) * tsc_per_ns_),
                        shares_queue};
      lanes_.push_back(std::make_unique<Lane>(std::move(parts), std::move(*ring), std::move(*inbox)));
      LaneThread& collector = *threads_[index % collectors];
      LaneThread& forwarder = *threads_[(separate ? collectors : 0) + index % forwarders];
      collector.collects(lanes_.back().get());
      forwarder.forwards(lanes_.back().get());
      lanes_.back()->set_threads(collector.side(), forwarder.side());
      if (l == 0) {
        host_path_->set_lane_bell(p, forwarder.side().bell);
      }
    }
    for (std::size_t owner = first; owner < first + options.queues; ++owner) {
      std::vector<Lane*> siblings;
      for (std::size_t l = owner + options.queues; l < lanes_.size(); l += options.queues) {
        siblings.push_back(lanes_[l].get());
      }
      if (!siblings.empty()) {
        lanes_[owner]->spread_over(siblings);
      }
    }
  }
  notes_.push_back(std::to_string(lanes_.size()) + " lanes, " + std::to_string(options_.batches) + " batches of " +
                   std::to_string(options_.batch) + " frames each (" + std::to_string(bytes >> 10) +
                   " KB of descriptors)");
  return {};
}

Expected<void> Engine::attach_device() {
  if (!gpu_) {
    return {};
  }
  for (const auto& port : ports_) {
    for (rte_mempool* pool : port->pools()) {
      Expected<void> pinned;
      port::for_each_area(pool, [&](void* base, std::size_t size) {
        if (pinned) {
          pinned = gpu_->register_host(base, size);
        }
      });
      if (!pinned) {
        return make_error("port '" + port->name() +
                          "': its frames cannot be pinned for the GPU: " + pinned.error().message);
      }
    }
  }
  const DevicePlan plan{static_cast<std::uint32_t>(lanes_.size()), options_.batches, options_.batch,
                        options_.memory.frame_bytes, options_.mode == Mode::full};
  if (auto attached = function_->attach(*gpu_, plan); !attached) {
    return attached;
  }
  Worker::Parts parts{
      gpu_.get(),      function_.get(),      {}, &clock_, timing_, options_.mode, placement_.worker_core,
      placement_.busy, placement_.scheduling};
  for (const auto& lane : lanes_) {
    parts.lanes.push_back(lane.get());
  }
  worker_ = std::make_unique<Worker>(std::move(parts));
  return {};
}

Expected<void> Engine::start() {
  running_ = true;
  host_path_->start();
  if (worker_ && options_.mode != Mode::collector_only) {
    worker_->start();
  }
  for (const auto& thread : threads_) {
    thread->start();
  }
  return {};
}

void Engine::stop() {
  if (!running_) {
    return;
  }
  running_ = false;
  for (const auto& lane : lanes_) {
    lane->stop_receiving();
  }
  for (const auto& thread : threads_) {
    thread->wake();
  }
  // The worker seals and reaps until nothing is in flight; a second is a thousand cycles.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto drained = [&] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->drained(); });
  };
  while (!drained() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  host_path_->stop();
  if (worker_) {
    worker_->stop();
  }
  for (const auto& thread : threads_) {
    thread->stop();
  }
  for (const auto& lane : lanes_) {
    lane->abandon();
  }
  for (const auto& port : ports_) {
    port->stop();
  }
}

Engine::~Engine() {
  stop();
  threads_.clear();
  worker_.reset();
  lanes_.clear();
  host_path_.reset();
  function_.reset();
  gpu_.reset();  // unpins the frames before their pools go
  for (const auto& port : ports_) {
    port->close();  // all of them before the first one's frames go: a driver may hold frames of any
  }
  ports_.clear();
  for (void* base : host_memory_) {
    std::free(base);
  }
}

EngineStats Engine::stats() const {
  EngineStats stats;
  stats.drops.resize(packet::max_reasons);
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    stats.ports.push_back({});
    stats.ports.back().device = ports_[p]->stats();
    stats.ports.back().host = host_path_->losses(p);
  }
  for (const auto& lane : lanes_) {
    const LaneCounters& in = lane->collector_counters();
    const LaneCounters& out = lane->forwarder_counters();
    EngineStats::Lane one;
    one.port = lane->parts().port;
    one.queue = lane->parts().queue;
    one.core = placement_.lane_cores[lane->parts().index % placement_.lane_cores.size()];
    // What can only fall out of balance in one direction is read first, so that a running lane looks at worst in
    // flight.
    for (std::size_t p = 0; p < ports_.size(); ++p) {
      const std::uint64_t frames = out.tx_frames[p].get();
      const std::uint64_t bytes = out.tx_bytes[p].get();
      one.tx_frames += frames;
      one.tx_bytes += bytes;
      stats.ports[p].tx_frames += frames;
      stats.ports[p].tx_bytes += bytes;
    }
    for (unsigned r = 0; r < packet::max_reasons; ++r) {
      const std::uint64_t n = out.drops[r].get() + in.drops[r].get();
      one.dropped += n;
      stats.drops[r] += n;
    }
    one.punted = out.punted_frames.get() + in.punted_frames.get();
    one.injected = out.injected_frames.get();
    one.in_flight = lane->in_flight();
    one.rx_frames = in.rx_frames.get();
    one.rx_bytes = in.rx_bytes.get();
    one.batches_cpu = in.batches_cpu.get();
    one.frames_cpu = in.frames_cpu.get();
    one.batches_gpu = in.batches_gpu.get();
    one.frames_gpu = in.frames_gpu.get();
    one.batches_rescued = out.batches_rescued.get();
    one.frames_rescued = out.frames_rescued.get();
    one.sealed_full = in.sealed_full.get();
    one.receive_stalls = in.receive_stalls.get();
    one.misses = out.misses.get();
    one.misses_away = out.misses_away.get();
    one.measured = out.measured.get();
    stats.ports[one.port].rx_frames += one.rx_frames;
    stats.ports[one.port].rx_bytes += one.rx_bytes;
    stats.latency.add(lane->latency());
    for (auto field : {&EngineStats::Lane::rx_frames, &EngineStats::Lane::rx_bytes, &EngineStats::Lane::tx_frames,
                       &EngineStats::Lane::tx_bytes, &EngineStats::Lane::injected, &EngineStats::Lane::punted,
                       &EngineStats::Lane::dropped, &EngineStats::Lane::in_flight, &EngineStats::Lane::batches_cpu,
                       &EngineStats::Lane::frames_cpu, &EngineStats::Lane::batches_gpu, &EngineStats::Lane::frames_gpu,
                       &EngineStats::Lane::batches_rescued, &EngineStats::Lane::frames_rescued,
                       &EngineStats::Lane::sealed_full, &EngineStats::Lane::receive_stalls, &EngineStats::Lane::misses,
                       &EngineStats::Lane::misses_away, &EngineStats::Lane::measured}) {
      stats.total.*field += one.*field;
    }
    stats.lanes.push_back(one);
  }
  for (const auto& thread : threads_) {
    stats.lanes_away.add(thread->away());
  }
  stats.worker_away.add(clock_.away);
  if (worker_) {
    stats.slow_launches = worker_->counters().slow_launches.get();
    stats.device_time.add(worker_->device_time());
    stats.cycles = worker_->counters().cycles.get();
    stats.late_cycles = worker_->counters().late_cycles.get();
    stats.overruns = worker_->counters().overruns.get();
    stats.failed_batches = worker_->counters().failed_batches.get();
    stats.gpu_up = clock_.device_up.load(std::memory_order_relaxed);
  }
  return stats;
}

}  // namespace sluice::engine
