#include "engine/engine.h"

#include <rte_cycles.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "device/name.h"
#include "port/virtual_device.h"

namespace sluice::engine {
namespace {

constexpr unsigned most_lanes_of_a_port = 64;
constexpr std::chrono::seconds longest_reset(10);  // that stop() waits for
std::atomic<bool> left_behind{false};
static_assert(batch_range.least >= burst_size);

std::string us(std::chrono::nanoseconds time) {
  const double value = static_cast<double>(time.count()) / 1000.0;
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 2) + " us";
}

// What control/config has said of a file already, at its line.
Expected<void> check_numbers(const Options& options) {
  struct Number {
    const char* name;
    unsigned value;
    Range allowed;
  };
  for (const Number& number :
       {Number{"overlap", options.overlap, overlap_range}, Number{"batch", options.batch, batch_range},
        Number{"batches", options.batches, batches_range}, Number{"streams", options.streams, streams_range}}) {
    if (!number.allowed.has(number.value)) {
      return make_error(std::string("[engine] ") + number.name + " = " + std::to_string(number.value) +
                        ": allowed is from " + std::to_string(number.allowed.least) + " to " +
                        std::to_string(number.allowed.most));
    }
  }
  return {};
}

bool follows_conversations(const Options& options) {
  return find_such(options.chain, &ElementType::follows_conversations) != nullptr;
}

}  // namespace

bool staggers(const Options& options) {
  if (options.stagger != Stagger::automatic) return options.stagger == Stagger::on;
  return find_such(options.chain, &ElementType::launches_alone) != nullptr;
}

namespace {

Expected<void> check_lanes(const Options& options) {
  const auto gpus = device::gpu_indices(options.device);
  std::size_t lanes = 0;
  for (const port::PortOptions& port : options.ports) lanes += port.lane_count();
  if (!gpus || gpus->size() <= lanes) return {};
  return make_error("[engine] device = \"" + options.device + "\": " + std::to_string(gpus->size()) + " GPUs for " +
                    std::to_string(lanes) + (lanes == 1 ? " lane" : " lanes") +
                    ", and one without a lane has no work: name fewer, or raise lanes of a port");
}

// Whether there is a GPU for "auto" is not known.
Expected<Placement> planned_placement(const Options& options) {
  const auto gpus = device::gpu_indices(options.device);
  Demand demand{.ports = {}, .threads_limit = std::numeric_limits<unsigned>::max(), .needs_worker = gpus.has_value()};
  if (gpus) demand.more_gpu_nodes.assign(gpus->size() - 1, -1);
  for (const port::PortOptions& port : options.ports) {
    demand.ports.push_back({port.name, -1, port.lane_count(), port.queues});
  }
  demand.paired = follows_conversations(options);
  return place(options, this_machine(), demand);
}

}  // namespace

Expected<void> check_placement(const Options& options) {
  if (auto checked = check_lanes(options); !checked) return checked;
  const auto placement = planned_placement(options);
  return placement ? Expected<void>() : tl::unexpected(placement.error());
}

Plan planned_lanes(const Options& options) {
  Plan plan{.lanes = 0, .deadline = options.deadline, .captures = port::only_read_captures(options.ports)};
  for (const port::PortOptions& port : options.ports) {
    plan.lanes += port.lane_count();
  }
  if (const auto placement = planned_placement(options)) {
    plan.threads = static_cast<std::uint32_t>(placement->lane_cores.size());
    plan.forwarders = !placement->forwarder_cores.empty();
    plan.helpers = static_cast<std::uint32_t>(placement->compute_cores.size());
  }
  return plan;
}

Expected<std::unique_ptr<Engine>> Engine::create(const Options& options, const PipelineMaker& make_pipeline,
                                                 const GpuOpener& open_gpu) {
  std::unique_ptr<Engine> engine(new Engine());
  engine->options_ = options;
  engine->tsc_per_ns_ = static_cast<double>(rte_get_tsc_hz()) / 1e9;

  Expected<void> step = check_numbers(options);
  step = step ? check_lanes(options) : step;
  step = step ? engine->open_devices(open_gpu) : step;
  step = step ? engine->check_ports() : step;
  step = step ? engine->open_ports() : step;
  if (!step) {
    return tl::unexpected(step.error());
  }
  auto pipeline = make_pipeline(engine->port_table_);
  if (!pipeline) {
    return tl::unexpected(pipeline.error());
  }
  engine->pipeline_ = std::move(*pipeline);
  step = engine->plan();
  step = step ? engine->open_host_path() : step;
  step = step ? engine->pipeline_->prepare(engine->lane_plan()) : step;
  step = step ? engine->build_lanes() : step;
  step = step ? engine->open_jobs() : step;
  step = step ? engine->attach_devices() : step;
  if (step && engine->jobs_) step = engine->jobs_->notify_users(*engine->pipeline_);
  if (!step) {
    return tl::unexpected(step.error());
  }
  return engine;
}

Expected<void> Engine::open_devices(const GpuOpener& open_gpu) {
  if (options_.device != "cpu") {
    const auto indices =
        options_.device == "auto" ? std::optional(std::vector<int>{0}) : device::gpu_indices(options_.device);
    if (!indices) {
      return make_error("[engine] device = \"" + options_.device +
                        "\": the devices are \"auto\", \"cpu\" and \"cuda:N\", or several such as \"cuda:0,cuda:1\"");
    }
    for (const int index : *indices) {
      auto gpu = open_gpu(index, options_.streams + (options_.jobs ? 1 : 0));
      if (gpu) {
        gpus_.push_back(std::move(*gpu));
      } else if (options_.device != "auto") {
        return make_error("[engine] device = \"" + options_.device + "\": " + gpu.error().message +
                          "; device = \"auto\" takes the CPU when there is no GPU, \"cpu\" always");
      } else {
        notes_.push_back("device: CPU, because " + gpu.error().message);
      }
    }
  }
  for (const auto& gpu : gpus_) {
    notes_.push_back("device: " + gpu->info().name + " (" + device::gpu_name(gpu->info().index) + ", PCI " +
                     gpu->info().pci + ", " + std::to_string(gpu->info().multiprocessors) + " SMs, " +
                     std::to_string(options_.streams) + " streams)");
  }
  if (options_.device == "cpu") {
    notes_.emplace_back("device: CPU");
  }
  if (chooses()) {
    notes_.emplace_back("each lane computes on its core or on the GPU, whichever carries its load better, as measured");
  }
  for (std::size_t device = 0; device < std::max<std::size_t>(gpus_.size(), 1); ++device) {
    clocks_.push_back(std::make_unique<Clock>());
  }
  return {};
}

Expected<void> Engine::plan() {
  const bool looks = std::any_of(ports_.begin(), ports_.end(), [](const auto& port) {
    unsigned queue = port->receives() ? 0 : port->options().queues;
    while (queue < port->options().queues && port->wait_fd(static_cast<std::uint16_t>(queue)) >= 0) {
      ++queue;
    }
    return queue < port->options().queues;
  });
  const auto sleep = looks && !placement_.busy ? longest_lane_sleep(options_.deadline) : std::chrono::nanoseconds(0);
  const bool on_gpu = !gpus_.empty();
  auto timing = on_gpu ? plan_timing(options_.deadline, options_.cycle, options_.overlap, sleep,
                                     collect_time_of(options_), pipeline_->passes(), options_.jobs)
                       : plan_cpu_timing(options_.deadline, sleep, inline_batch_of(options_));
  if (!timing) {
    return tl::unexpected(timing.error());
  }
  timing_ = *timing;
  timing_.overlap = options_.overlap;
  timing_.stagger = on_gpu && staggers(options_);
  const std::string slept = sleep.count() == 0 ? "" : " + " + us(sleep) + " of sleep";
  if (on_gpu) {
    notes_.push_back("cycle " + us(timing_.cycle) + (timing_.stagger ? ", staggered" : "") + ", overlap " +
                     std::to_string(timing_.overlap) + ", bound " +
                     bound_text(timing_.overlap, pipeline_->passes(), options_.jobs) + "*I + " +
                     us(collect_time_of(options_)) +
                     (options_.collect_measured ? " of collecting, as measured," : " of collecting, as estimated,") +
                     slept + " = " + us(timing_.bound) + ", deadline " + us(timing_.deadline));
  } else {
    notes_.push_back("no cycle: each lane computes on its own core, run to completion, at most " +
                     std::to_string(inline_batch) +
                     " frames at a time; estimate for an idle core, no bound: " + us(inline_batch_of(options_)) +
                     " of a batch" + (options_.inline_batch.count() == 0 ? "" : ", as measured,") + slept + " = " +
                     us(timing_.bound) + "; deadline " + us(options_.deadline));
  }
  return {};
}

Expected<void> Engine::check_ports() const {
  if (options_.ports.empty()) {
    return make_error("there is no [[port]]: a gateway needs at least one");
  }
  if (options_.ports.size() > max_ports) {
    return make_error("there are " + std::to_string(options_.ports.size()) + " ports; " + std::to_string(max_ports) +
                      " is the most");
  }
  for (const PortOptions& port : options_.ports) {
    if (port.lane_count() < port.queues || port.lane_count() > most_lanes_of_a_port) {
      return make_error("[[port]] '" + port.name + "': lanes = " + std::to_string(port.lane_count()) + ", and it has " +
                        std::to_string(port.queues) + " queues: allowed is as many or more, up to " +
                        std::to_string(most_lanes_of_a_port));
    }
  }
  return {};
}

Expected<void> Engine::open_ports() {
  unsigned threads_limit = static_cast<unsigned>(options_.forwarder_cores.size());
  if (threads_limit == 0) {
    for (const PortOptions& port : options_.ports) {
      threads_limit += port.lane_count();
    }
  }
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
  std::vector<PortInfo> infos;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    infos.push_back(describe(i));
  }
  port_table_ = PortTable(std::move(infos));
  return {};
}

PortInfo Engine::describe(std::size_t i) {
  const PortOptions& options = ports_[i]->options();
  PortInfo info{options.name,          ports_[i]->mac(),     options.mtu,  static_cast<std::uint16_t>(i),
                !options.twin.empty(), options.lane_count(), options.twin, port::is_virtual(options.device),
                options.device};
  info.names_peer = !options.peer.empty();
  for (const port::InterfaceAddress& one : options.addresses) info.addresses.push_back(one.address);
  if (info.names_peer) {
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
  if (const std::string unseen = port::unseen_arrival(options.device); !unseen.empty()) {
    notes_.push_back("port " + options.name + ": " + unseen);
  }
  for (const std::string& note : ports_[i]->notes()) {
    notes_.push_back("port " + options.name + ": " + note);
  }
  return info;
}

Expected<void> Engine::place_threads(unsigned threads_limit) {
  Demand demand{{}, threads_limit, !gpus_.empty(), gpus_.empty() ? -1 : gpus_.front()->info().numa_node};
  for (const auto& port : ports_) {
    const PortOptions& options = port->options();
    demand.ports.push_back({port->name(), port->numa_node(), options.lane_count(), options.queues});
  }
  for (std::size_t g = 1; g < gpus_.size(); ++g) demand.more_gpu_nodes.push_back(gpus_[g]->info().numa_node);
  demand.paired = follows_conversations(options_);
  auto placement = place(options_, this_machine(), demand);
  if (!placement) {
    return tl::unexpected(placement.error());
  }
  placement_ = std::move(*placement);
  notes_.insert(notes_.end(), placement_.notes.begin(), placement_.notes.end());
  return {};
}

Expected<void> Engine::open_host_path() {
  auto host_path = HostPath::create(ports_, options_.memory.frame_bytes, pipeline_->sends());
  if (!host_path) {
    return tl::unexpected(host_path.error());
  }
  host_path_ = std::move(*host_path);
  notes_.insert(notes_.end(), host_path_->notes().begin(), host_path_->notes().end());
  return {};
}

Plan Engine::lane_plan() const {
  std::vector<std::uint16_t> ports;
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    ports.insert(ports.end(), ports_[p]->options().lane_count(), static_cast<std::uint16_t>(p));
  }
  const auto lanes = static_cast<std::uint32_t>(ports.size());
  return {.lanes = lanes,
          .threads = static_cast<std::uint32_t>(placement_.lane_cores.size()),
          .forwarders = !placement_.forwarder_cores.empty(),
          .deadline = options_.deadline,
          .captures = port::only_read_captures(options_.ports),
          .cycle = timing_.cycle,
          .ports = std::move(ports),
          .helpers = helper_count()};
}

// The GPUs were opened, and the bound was planned, by what the options say of the chain.
Expected<void> Engine::open_jobs() {
  const bool submits = pipeline_->first<JobUser>() != nullptr;
  if (submits != options_.jobs) {
    return make_error(submits ? "the chain submits jobs, and Options::jobs does not say so"
                              : "Options::jobs is set, and no element of the chain submits any");
  }
  if (!submits) return {};
  JobService::Parts parts{
      .gpus = gpus_,
      .memory = [this](std::size_t bytes) { return batch_memory(bytes); },
      .worker_bells = {},
      .timing = timing_,
      .clock = {.now = [] { return static_cast<std::uint64_t>(rte_rdtsc()); }, .hz = rte_get_tsc_hz()}};
  for (std::size_t g = 0; g < gpus_.size(); ++g) parts.worker_bells.push_back(&clocks_[g]->bell);
  auto jobs = JobService::create(*pipeline_, std::move(parts));
  if (!jobs) return tl::unexpected(jobs.error());
  jobs_ = std::move(*jobs);
  for (const auto& queue : jobs_->queues()) {
    notes_.push_back("jobs " + std::string(queue->name()) + ": " + std::to_string(queue->shape().slots) + " of " +
                     std::to_string(queue->shape().bytes) + " bytes, up to " + std::to_string(queue->shape().most) +
                     " to a batch" + (gpus_.empty() ? ", on cores" : ", in " + us(timing_.jobs) + " of each cycle"));
  }
  return {};
}

void Engine::start() {
  running_ = true;
  reserved_.emplace(placement_.cores());
  host_path_->start();
  if (jobs_) jobs_->start();
  for (const auto& worker : workers_) {
    if (options_.mode != Mode::collector_only) worker->start();
  }
  if (helpers_) helpers_->start();
  for (const auto& thread : threads_) {
    thread->start();
  }
}

void Engine::stop() {
  if (!running_.exchange(false)) {
    return;
  }
  // A reset may hang in the driver.
  std::unique_lock lock(device_mutex_, std::try_to_lock);
  for (const auto until = std::chrono::steady_clock::now() + longest_reset;
       !lock && std::chrono::steady_clock::now() < until && !lock.try_lock();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  is_stuck_ |= !lock;
  if (jobs_) jobs_->refuse();
  for (const auto& lane : lanes_) {
    lane->stop_receiving();
  }
  for (const auto& thread : threads_) {
    thread->wake();
  }
  // Lanes seal what they hold, and they and the worker go on until nothing is in flight; a second is a thousand cycles.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto drained = [&] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->drained(); });
  };
  while (!drained() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  host_path_->stop();
  for (const auto& worker : workers_) {
    is_stuck_ |= !worker->stop();
  }
  look_at_devices();
  if (jobs_) jobs_->stop();
  for (const auto& thread : threads_) {
    thread->stop();
  }
  if (helpers_) helpers_->stop();
  reserved_.reset();
  for (const auto& lane : lanes_) {
    lane->abandon();
    is_stuck_ |= lane->has_aside();
  }
  pipeline_->stopped();
  for (const auto& port : ports_) {
    port->stop();
  }
}

// Never destroyed.
void Engine::leave_behind() {
  struct Remains {
    std::unique_ptr<BatchMemory> batch_memory, spare_memory;
    std::vector<std::unique_ptr<device::Gpu>> gpus;
    std::vector<std::unique_ptr<port::Port>> ports;
    std::unique_ptr<Pipeline> pipeline;
    std::vector<std::unique_ptr<Clock>> clocks;
    std::vector<std::unique_ptr<Lane>> lanes;
    std::unique_ptr<JobService> jobs;
    std::vector<std::unique_ptr<Worker>> workers;
  };
  static auto& all = *new std::vector<Remains>;
  all.push_back({std::move(batch_memory_), std::move(spare_memory_), std::move(gpus_), std::move(ports_),
                 std::move(pipeline_), std::move(clocks_), std::move(lanes_), std::move(jobs_), std::move(workers_)});
  left_behind.store(true);
}

bool is_left_behind() {
  return left_behind.load();
}

Engine::~Engine() {
  stop();
  if (is_stuck_) {
    threads_.clear();
    helpers_.reset();
    host_path_.reset();
    for (const auto& port : ports_) port->close();
    leave_behind();
    return;
  }
  threads_.clear();
  helpers_.reset();
  workers_.clear();
  lanes_.clear();
  host_path_.reset();
  pipeline_.reset();
  jobs_.reset();
  gpus_.clear();  // unpins the frames before their pools go
  for (const auto& port : ports_) {
    port->close();  // all of them before the first one's frames go: a driver may hold frames of any
  }
  ports_.clear();
}

EngineStats Engine::stats() const {
  EngineStats stats;
  stats.drops.resize(packet::max_reasons);
  stats.answers.resize(packet::max_reasons);
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    stats.ports.push_back({});
    stats.ports.back().drops.resize(packet::max_reasons);
    stats.ports.back().device = ports_[p]->stats();
    stats.ports.back().host = host_path_->losses(p);
  }
  for (const auto& lane : lanes_) {
    stats.add(*lane, placement_.lane_cores[lane->parts().index % placement_.lane_cores.size()]);
    stats.lanes.back().device = lane->device();
    stats.lanes.back().on_device = lane->on_device();
    if (lane->chooses()) stats.lanes.back().choice = lane->choice();
  }
  for (const auto& thread : threads_) {
    stats.lanes_stalls.add(thread->stalls());
  }
  for (const auto& clock : clocks_) {
    stats.worker_stalls.add(clock->stalls);
  }
  for (const auto& worker : workers_) {
    stats.add(*worker);
  }
  if (helpers_) {
    for (const auto& helper : helpers_->helpers()) stats.add(*helper);
  }
  if (jobs_) stats.jobs = jobs_->counters();
  stats.gpu_up = gpu_up();
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    stats.gpus_up.push_back(gpu_up(g));
  }
  return stats;
}

}  // namespace sluice::engine
