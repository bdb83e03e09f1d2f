// The engine's lanes: their memory, their threads, and which thread runs which lane.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/units.h"
#include "device/name.h"
#include "engine/engine.h"
#include "engine/gpu_spread.h"

namespace sluice::engine {
namespace {

// A lane whose frames cost too much for its core tries again after so long (load.h). One whose GPU carried less tries
// that again after so long, and after twice as long each time, up to the longest (device_choice.h).
constexpr std::chrono::seconds retry_computing(10), longest_retry(160), try_core(1);
// What a lane compares (device_choice.h): windows on the core are a cycle within these limits, with the GPU several.
constexpr std::chrono::nanoseconds shortest_window = std::chrono::microseconds(250);
constexpr std::chrono::nanoseconds longest_window = std::chrono::milliseconds(1);
constexpr unsigned cycles_of_a_window = 8;
constexpr std::chrono::nanoseconds probe_every = std::chrono::milliseconds(250);

}  // namespace

// Memory that one GPU has pinned is every GPU's.
Expected<void*> Engine::batch_memory(std::size_t bytes) {
  if (!batch_memory_) batch_memory_ = std::make_unique<BatchMemory>(gpu());
  return batch_memory_->allocate(bytes);
}

// Of batches that a core computes in the place of those that a GPU keeps. Where there is one, no GPU gets them, and
// while it does not fail they cost address space alone. Else the lane goes on with them and another GPU.
DeviceMemory Engine::spare_memory() {
  if (gpus_.empty()) return nullptr;
  if (gpus_.size() > 1) return [this](std::size_t bytes) { return batch_memory(bytes); };
  if (!spare_memory_) spare_memory_ = std::make_unique<BatchMemory>(nullptr);
  return [this](std::size_t bytes) { return spare_memory_->allocate(bytes); };
}

Expected<void> Engine::build_lanes() {
  if (helper_count() != 0) {
    helpers_ = std::make_unique<ComputeHelpers>(placement_.compute_cores, placement_.busy, placement_.scheduling);
  }
  for (const std::vector<int>* cores : {&placement_.lane_cores, &placement_.forwarder_cores}) {
    for (const int core : *cores) {
      threads_.push_back(std::make_unique<LaneThread>(core, placement_.busy, placement_.scheduling,
                                                      longest_lane_sleep(options_.deadline)));
      if (helpers_) threads_.back()->set_share(helpers_->add_share());
    }
  }
  deal_devices();
  std::size_t bytes = 0;
  for (std::uint16_t p = 0; p < ports_.size(); ++p) {
    const std::size_t first = lanes_.size();
    for (std::uint16_t l = 0; l < ports_[p]->options().lane_count(); ++l) {
      if (auto added = add_lane(p, l); !added) {
        return added;
      }
      for (unsigned pass = 0; pass < pipeline_->passes(); ++pass) bytes += lanes_.back()->ring(pass).bytes();
    }
    spread_queues(first, ports_[p]->options().queues);
  }
  notes_.push_back(counted_text(lanes_.size(), "lane") + ", " + std::to_string(options_.batches) + " batches of " +
                   std::to_string(options_.batch) + " frames each (" + std::to_string(bytes >> 10) +
                   " KB of descriptors)");
  return {};
}

// A lane's frames are on the node of its port, and its core is there if it can be (placement.h).
void Engine::deal_devices() {
  if (gpus_.empty()) return;
  const Topology machine = this_machine();
  std::vector<int> lanes, gpus;
  for (const auto& port : ports_) {
    for (unsigned l = 0; l < port->options().lane_count(); ++l) {
      const int core = placement_.lane_cores[lanes.size() % placement_.lane_cores.size()];
      lanes.push_back(port->numa_node() >= 0 ? port->numa_node() : machine.node_of(core));
    }
  }
  for (const auto& gpu : gpus_) gpus.push_back(gpu->info().numa_node);
  dealt_ = deal_lanes(lanes, gpus);
  for (std::size_t g = 0; gpus_.size() > 1 && g < gpus_.size(); ++g) {
    std::size_t has = 0, far = 0;
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      has += dealt_[l] == g ? 1 : 0;
      far += dealt_[l] == g && gpus[g] >= 0 && lanes[l] >= 0 && lanes[l] != gpus[g] ? 1 : 0;
    }
    notes_.push_back(device::gpu_name(gpus_[g]->info().index) + ": " + counted_text(has, "lane") +
                     (far == 0 ? "" : ", " + std::to_string(far) + " of them on another NUMA node"));
  }
}

// Where no element has jobs to share there is nothing to help with.
std::uint32_t Engine::helper_count() const {
  const bool is_of_use = pipeline_->first<Divisible>() != nullptr;
  return is_of_use ? static_cast<std::uint32_t>(placement_.compute_cores.size()) : 0;
}

std::size_t Engine::most_lanes_of_a_thread() const {
  std::size_t lanes = 0;
  for (const auto& port : ports_) lanes += port->options().lane_count();
  const std::size_t threads = placement_.lane_cores.size();
  return (lanes + threads - 1) / threads;
}

Expected<void> Engine::add_lane(std::uint16_t port, std::uint16_t lane_of_port) {
  const unsigned queues = ports_[port]->options().queues;
  const std::size_t collectors = placement_.lane_cores.size();
  const bool separate = !placement_.forwarder_cores.empty();
  const std::size_t forwarders = separate ? placement_.forwarder_cores.size() : collectors;
  const auto index = static_cast<std::uint32_t>(lanes_.size());
  const bool shares_queue = lane_of_port >= queues;
  std::vector<std::unique_ptr<BatchRing>> rings;
  for (unsigned pass = 0; pass < pipeline_->passes(); ++pass) {
    auto ring = BatchRing::create(
        {index, options_.batches, options_.batch, pipeline_->areas(pass), pass, pipeline_->is_departing(pass)},
        [this](std::size_t bytes) { return batch_memory(bytes); }, spare_memory());
    if (!ring) return tl::unexpected(ring.error());
    rings.push_back(std::move(*ring));
  }
  auto inbox = shares_queue ? FlowInbox::make("inbox-" + std::to_string(index)) : FlowInbox();
  if (!inbox) {
    return tl::unexpected(inbox.error());
  }
  std::vector<port::Port*> ports;
  for (const auto& one : ports_) {
    ports.push_back(one.get());
  }
  std::vector<Clock*> clocks;
  for (const auto& clock : clocks_) clocks.push_back(clock.get());
  const auto ticks = [this](std::chrono::nanoseconds time) {
    return static_cast<std::uint64_t>(static_cast<double>(time.count()) * tsc_per_ns_);
  };
  const bool refuses_overdue =
      options_.admission == Admit::in_time || (options_.admission == Admit::automatic && !gpus_.empty());
  LoadWatch::Limits computes_below{.frames = inline_batch, .cycle_tsc = ticks(timing_.cycle)};
  if (options_.cpu_below >= 0) {
    computes_below.frames = static_cast<std::uint32_t>(options_.cpu_below);
  } else if (!gpus_.empty() && computes_below.cycle_tsc != 0) {
    computes_below.work_tsc = std::max<std::uint64_t>(computes_below.cycle_tsc / 2 / most_lanes_of_a_thread(), 1);
    computes_below.retry_cycles = ticks(retry_computing) / computes_below.cycle_tsc;
  }
  Lane::Parts parts{.index = index,
                    .port = port,
                    .queue = static_cast<std::uint16_t>(lane_of_port % queues),
                    .ports = std::move(ports),
                    .tx_queue = static_cast<std::uint16_t>(index % forwarders),
                    .host_ports = host_path_->host_ports(),
                    .drains_injected = lane_of_port == 0,
                    .pipeline = pipeline_.get(),
                    .clock = clocks_[dealt_.empty() ? 0 : dealt_[index]].get(),
                    .mode = options_.mode,
                    .computes_below = computes_below,
                    .deadline_tsc = ticks(options_.deadline),
                    .cycle_tsc = ticks(timing_.cycle),
                    .on_device_tsc = ticks(timing_.on_device()),
                    .refuses_overdue = refuses_overdue,
                    .shares_queue = shares_queue,
                    .tap = &tap_,
                    .clocks = std::move(clocks)};
  if (chooses()) {
    const auto window = std::clamp(timing_.cycle, shortest_window, longest_window);
    parts.choice = {.window = ticks(window),
                    .device_window = ticks(std::max(window, timing_.cycle * cycles_of_a_window)),
                    .retry = ticks(retry_computing),
                    .longest_retry = ticks(longest_retry),
                    .try_core = ticks(try_core),
                    .probe = ticks(probe_every),
                    .second = ticks(std::chrono::seconds(1))};
    parts.turns = &turns_;
  }
  lanes_.push_back(std::make_unique<Lane>(std::move(parts), std::move(rings), std::move(*inbox)));
  LaneThread& collector = *threads_[index % collectors];
  LaneThread& forwarder = *threads_[(separate ? collectors : 0) + index % forwarders];
  collector.collects(lanes_.back().get());
  forwarder.forwards(lanes_.back().get());
  lanes_.back()->set_threads(collector.side(), forwarder.side());
  if (lane_of_port == 0) {
    host_path_->set_lane_bell(port, forwarder.side().bell);
  }
  return {};
}

void Engine::spread_queues(std::size_t first, unsigned queues) {
  for (std::size_t owner = first; owner < first + queues; ++owner) {
    std::vector<Lane*> siblings;
    for (std::size_t l = owner + queues; l < lanes_.size(); l += queues) {
      siblings.push_back(lanes_[l].get());
    }
    if (!siblings.empty()) {
      lanes_[owner]->spread_over(siblings);
    }
  }
}

}  // namespace sluice::engine
