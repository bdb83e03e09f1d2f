#include "engine/placement.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

#include "base/units.h"

namespace sluice::engine {
namespace {

bool contains(const std::vector<int>& cores, int core) {
  return std::find(cores.begin(), cores.end(), core) != cores.end();
}

std::vector<int> first(const std::vector<int>& cores, std::size_t count) {
  return {cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(std::min(count, cores.size()))};
}

std::string list(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) {
    text += (text.empty() ? "" : ",") + std::to_string(core);
  }
  return text;
}

Expected<void> check_core(const Topology& machine, int core, const char* key) {
  if (!machine.has(core)) {
    return make_error(std::string("[engine] ") + key + ": core " + std::to_string(core) +
                      " does not exist or is not allowed to this process; there are " + list(machine.cores));
  }
  return {};
}

Expected<void> check_list(const Topology& machine, const Placement& placement, const std::vector<int>& cores,
                          const char* key) {
  for (const int core : cores) {
    if (auto ok = check_core(machine, core, key); !ok) {
      return ok;
    }
    if (std::count(cores.begin(), cores.end(), core) > 1) {
      return make_error(std::string("[engine] ") + key + ": core " + std::to_string(core) + " is named twice");
    }
    if (placement.busy && contains(placement.worker_cores(), core)) {
      return make_error(
          "[engine] core " + std::to_string(core) +
          " is both a lane's and the worker's, and both poll without sleeping: set worker_core to another core, "
          "or poll = \"adaptive\"");
    }
  }
  return {};
}

Expected<void> check_lists(const Options& options, const Topology& machine, const Placement& placement) {
  if (auto ok = check_list(machine, placement, options.cores, "cores"); !ok) {
    return ok;
  }
  if (auto ok = check_list(machine, placement, options.forwarder_cores, "forwarder_cores"); !ok) {
    return ok;
  }
  if (auto ok = check_list(machine, placement, options.compute_cores, "compute_cores"); !ok) {
    return ok;
  }
  for (const int core : options.cores) {
    if (placement.busy && contains(options.forwarder_cores, core)) {
      return make_error("[engine] core " + std::to_string(core) +
                        " is in cores and in forwarder_cores, and both poll without sleeping: give the forwarder "
                        "another core, or leave forwarder_cores out");
    }
  }
  return {};
}

// The lowest core of the GPU's node that nobody asked for. But the machine's first core takes the interrupts; a worker
// that waits for one of them raises its time point late.
int choose_worker_core(const Options& options, const Topology& machine, int gpu_node,
                       const std::vector<int>& workers = {}) {
  const auto fault = [&](int core) {
    const bool asked_for = contains(options.cores, core) || contains(options.forwarder_cores, core) ||
                           contains(options.compute_cores, core);
    const bool remote = gpu_node >= 0 && machine.node_of(core) != gpu_node;
    const bool interrupted = machine.cores.size() > 2 && core == machine.cores.front();
    return 8 * contains(workers, core) + 4 * asked_for + 2 * remote + 1 * interrupted;
  };
  return *std::min_element(machine.cores.begin(), machine.cores.end(),
                           [&](int a, int b) { return fault(a) < fault(b); });
}

// The ports of the lanes that thread `index` of `threads` gets.
std::vector<const Demand::Port*> ports_of(const Demand& demand, std::size_t index, std::size_t threads) {
  std::vector<const Demand::Port*> ports;
  std::size_t lane = 0;
  for (const Demand::Port& port : demand.ports) {
    for (unsigned i = 0; i < port.lanes; ++i, ++lane) {
      if (lane % threads == index) {
        ports.push_back(&port);
      }
    }
  }
  return ports;
}

// The node of most of a thread's lanes; -1: any.
int node_for(const Demand& demand, std::size_t index, std::size_t threads) {
  std::map<int, unsigned> lanes_on;
  for (const Demand::Port* port : ports_of(demand, index, threads)) {
    if (port->node >= 0) {
      ++lanes_on[port->node];
    }
  }
  const auto most = std::max_element(lanes_on.begin(), lanes_on.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == lanes_on.end() ? -1 : most->first;
}

// From the highest core down: the first one serves the kernel and the control thread. First each thread that has a node
// gets a core there; then those that are left get what is left.
std::vector<int> choose_lane_cores(const Options& options, const Topology& machine, const Demand& demand,
                                   const std::vector<int>& workers, std::size_t wanted) {
  std::vector<int> free;
  for (auto core = machine.cores.rbegin(); core != machine.cores.rend(); ++core) {
    const bool only = machine.cores.size() == 1;
    if (!contains(workers, *core) && (only || *core != machine.cores.front()) &&
        !contains(options.forwarder_cores, *core) && !contains(options.compute_cores, *core)) {
      free.push_back(*core);
    }
  }
  if (free.empty()) {
    return {machine.cores.back()};
  }
  std::vector<int> chosen(std::min(wanted, free.size()), -1);
  for (const bool near : {true, false}) {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const int node = node_for(demand, i, chosen.size());
      const auto core = std::find_if(free.begin(), free.end(),
                                     [&](int candidate) { return !near || machine.node_of(candidate) == node; });
      if (chosen[i] < 0 && core != free.end()) {
        chosen[i] = *core;
        free.erase(core);
      }
    }
  }
  return chosen;
}

// One line for each port with lanes whose thread is on another node.
void note_far_cores(const Topology& machine, const Demand& demand, const std::vector<int>& cores,
                    std::vector<std::string>& notes) {
  for (const Demand::Port& port : demand.ports) {
    std::vector<int> far;
    for (std::size_t i = 0; i < cores.size(); ++i) {
      const auto ports = ports_of(demand, i, cores.size());
      if (port.node >= 0 && machine.node_of(cores[i]) != port.node &&
          std::find(ports.begin(), ports.end(), &port) != ports.end()) {
        far.push_back(cores[i]);
      }
    }
    if (!far.empty()) {
      notes.push_back((far.size() == 1 ? "core " : "cores ") + list(far) + (far.size() == 1 ? " is" : " are") +
                      " on another NUMA node than port " + port.name + ", which is on node " +
                      std::to_string(port.node));
    }
  }
}

void note(const Topology& machine, const Demand& demand, unsigned lanes, bool shared, Placement& placement) {
  const unsigned nodes = machine.node_count();
  std::string text = std::to_string(machine.cores.size()) + " cores" +
                     (nodes > 1 ? " on " + std::to_string(nodes) + " NUMA nodes" : "") + ", lanes on " +
                     list(placement.lane_cores);
  if (!placement.forwarder_cores.empty()) {
    text += ", their forwarders on " + list(placement.forwarder_cores);
  }
  if (!placement.compute_cores.empty()) {
    text += ", helpers that compute on " + list(placement.compute_cores);
  }
  if (demand.needs_worker) {
    text += placement.more_worker_cores.empty() ? ", worker on " : ", workers on ";
    text += std::to_string(placement.worker_core);
    for (const int core : placement.more_worker_cores) text += "," + std::to_string(core);
  }
  text += placement.busy ? ", busy polling" : ", adaptive polling";
  text += placement.scheduling == Scheduling::realtime ? " in real time" : "";
  if (shared) {
    text += "; " + counted_text(lanes, "lane") + (lanes == 1 ? " shares " : " share ") +
            counted_text(placement.lane_cores.size(), "thread") + " because a port has only " +
            counted_text(demand.threads_limit, "transmit queue");
  }
  placement.notes.push_back(std::move(text));
  note_far_cores(machine, demand, placement.lane_cores, placement.notes);
  note_far_cores(machine, demand, placement.forwarder_cores, placement.notes);
  if (demand.needs_worker && demand.gpu_node >= 0 && machine.node_of(placement.worker_core) != demand.gpu_node) {
    placement.notes.push_back("core " + std::to_string(placement.worker_core) +
                              ", the worker's, is on another NUMA node than the GPU, which is on node " +
                              std::to_string(demand.gpu_node));
  }
}

// A lane waits for helpers without sleeping: on one core neither would get on.
Expected<void> check_compute_cores(const Placement& placement) {
  const std::vector<int> workers = placement.worker_cores();
  for (const int core : placement.compute_cores) {
    const char* const whose = contains(placement.lane_cores, core)        ? "a lane's"
                              : contains(placement.forwarder_cores, core) ? "a forwarder's"
                              : contains(workers, core)                   ? "a worker's"
                                                                          : nullptr;
    if (whose == nullptr) continue;
    return make_error("[engine] compute_cores: core " + std::to_string(core) + " is " + whose +
                      ", too, which waits for what is computed there: name cores that nothing else of the gateway is "
                      "on; lanes are on " +
                      list(placement.lane_cores));
  }
  return {};
}

// How many threads so many lanes of each port can have, `limit` at most.
unsigned paired_threads(unsigned lanes, unsigned limit) {
  unsigned threads = std::min(lanes, std::max(1U, limit));
  while (lanes % threads != 0) --threads;
  return threads;
}

Expected<void> check_pairs(const Options& options, const Demand& demand) {
  const Demand::Port& one = demand.ports.front();
  for (const Demand::Port& other : demand.ports) {
    if (other.lanes != one.lanes || other.queues != one.queues) {
      return make_error(
          "[[port]] lanes: a function of the chain follows conversations, whose two directions come in by "
          "different ports and have to meet: give all ports as many queues and lanes; '" +
          one.name + "' has " + counted_text(one.queues, "queue") + " and " + counted_text(one.lanes, "lane") + ", '" +
          other.name + "' " + counted_text(other.queues, "queue") + " and " + counted_text(other.lanes, "lane"));
    }
  }
  const auto cores = static_cast<unsigned>(options.cores.size());
  if (cores > 0 && cores < one.lanes && one.lanes % cores != 0) {
    return make_error(
        "[engine] cores: a function of the chain follows conversations, so lanes of one number share a "
        "core: for " +
        counted_text(one.lanes, "lane") +
        " of each port name as many cores, or a number "
        "that divides it; there are " +
        std::to_string(cores));
  }
  return {};
}

}  // namespace

Expected<Placement> place(const Options& options, const Topology& machine, const Demand& demand) {
  Placement placement;
  placement.busy = polls_busily(options.poll, machine.cores.size());
  placement.scheduling = options.scheduling;
  if (options.worker_core >= 0) {
    if (auto ok = check_core(machine, options.worker_core, "worker_core"); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  if (auto ok = check_scheduling(options.scheduling, placement.busy); !ok) {
    return tl::unexpected(ok.error());
  }
  if (demand.needs_worker) {
    placement.worker_core =
        options.worker_core >= 0 ? options.worker_core : choose_worker_core(options, machine, demand.gpu_node);
    std::vector<int> workers{placement.worker_core};
    for (const int node : demand.more_gpu_nodes) {
      workers.push_back(choose_worker_core(options, machine, node, workers));
    }
    placement.more_worker_cores.assign(workers.begin() + 1, workers.end());
  }
  if (auto ok = check_lists(options, machine, placement); !ok) {
    return tl::unexpected(ok.error());
  }

  unsigned lanes = 0;
  for (const Demand::Port& port : demand.ports) {
    lanes += port.lanes;
  }
  const unsigned forwarding = std::min(lanes, demand.threads_limit);
  placement.forwarder_cores = first(options.forwarder_cores, forwarding);
  unsigned wanted = std::max(1U, options.forwarder_cores.empty() ? forwarding : lanes);
  const unsigned of_a_port = demand.ports.empty() ? 0 : demand.ports.front().lanes;
  if (demand.paired && of_a_port != 0) {
    if (auto ok = check_pairs(options, demand); !ok) return tl::unexpected(ok.error());
    wanted = paired_threads(of_a_port, wanted);
  }
  placement.lane_cores = options.cores.empty()
                             ? choose_lane_cores(options, machine, demand, placement.worker_cores(), wanted)
                             : first(options.cores, wanted);
  if (demand.paired && of_a_port != 0) {
    placement.lane_cores =
        first(placement.lane_cores, paired_threads(of_a_port, static_cast<unsigned>(placement.lane_cores.size())));
  }
  placement.compute_cores = options.compute_cores;
  if (auto ok = check_compute_cores(placement); !ok) return tl::unexpected(ok.error());
  note(machine, demand, lanes, wanted < lanes && demand.threads_limit < lanes, placement);
  return placement;
}

bool polls_busily(Poll poll, std::size_t cores) {
  constexpr std::size_t few = 4;
  return poll == Poll::busy || (poll == Poll::automatic && cores > few);
}

bool schedule_this_thread(Scheduling scheduling) {
  if (scheduling == Scheduling::normal) {
    return true;
  }
  // The lowest real-time priority: above every ordinary thread, below the kernel's own.
  const sched_param priority{sched_get_priority_min(SCHED_FIFO)};
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
}

Expected<void> check_scheduling(Scheduling scheduling, bool busy) {
  if (scheduling == Scheduling::normal) {
    return {};
  }
  bool allowed = false;
  std::thread([&] { allowed = schedule_this_thread(scheduling); }).join();
  if (!allowed) {
    return make_error(
        "[engine] scheduling = \"realtime\": the kernel does not allow it to this process: run as root or with "
        "CAP_SYS_NICE, or set it to \"normal\"");
  }
  long runtime_us = -1;
  std::ifstream("/proc/sys/kernel/sched_rt_runtime_us") >> runtime_us;
  if (busy && runtime_us >= 0) {
    return make_error(
        "[engine] scheduling = \"realtime\": this kernel stops threads that poll busily in real time for a while every "
        "second: set sysctl kernel.sched_rt_runtime_us=-1, or poll = \"adaptive\"");
  }
  return {};
}

std::vector<int> Placement::cores() const {
  std::vector<int> all = lane_cores;
  all.insert(all.end(), forwarder_cores.begin(), forwarder_cores.end());
  all.insert(all.end(), compute_cores.begin(), compute_cores.end());
  const std::vector<int> workers = worker_cores();
  all.insert(all.end(), workers.begin(), workers.end());
  return all;
}

std::vector<int> Placement::worker_cores() const {
  std::vector<int> all = more_worker_cores;
  if (worker_core >= 0) all.insert(all.begin(), worker_core);
  return all;
}

bool pin_this_thread(int core, const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

}  // namespace sluice::engine
