#include "engine/placement.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace sluice::engine {
namespace {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      cores.push_back(cpu);
    }
  }
  return cores;
}

int numa_node_of(int core) {
  std::error_code ec;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/devices/system/cpu/cpu" + std::to_string(core), ec)) {
    const std::string name = entry.path().filename();
    if (name.rfind("node", 0) == 0) {
      return std::stoi(name.substr(4));
    }
  }
  return 0;
}

std::string list(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) {
    text += (text.empty() ? "" : ",") + std::to_string(core);
  }
  return text;
}

}  // namespace

Expected<Placement> place(const Options& options, unsigned lanes, unsigned threads_limit, bool needs_worker) {
  const std::vector<int> cores = allowed_cores();
  const auto check = [&](int core, const char* key) -> Expected<void> {
    if (std::find(cores.begin(), cores.end(), core) == cores.end()) {
      return make_error(std::string("[engine] ") + key + ": core " + std::to_string(core) +
                        " does not exist or is not allowed to this process; there are " + list(cores));
    }
    return {};
  };

  if (options.worker_core >= 0) {
    if (auto ok = check(options.worker_core, "worker_core"); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  Placement placement;
  const bool few = cores.size() <= 4;
  placement.busy = options.poll == Poll::busy || (options.poll == Poll::automatic && !few);
  placement.scheduling = options.scheduling;
  if (auto ok = check_scheduling(options.scheduling, placement.busy); !ok) {
    return tl::unexpected(ok.error());
  }
  if (needs_worker) {
    // The first core takes the interrupts; a worker that waits for one of them raises its time point late.
    placement.worker_core = options.worker_core >= 0 ? options.worker_core : cores[cores.size() > 2 ? 1 : 0];
  }

  const auto check_list = [&](const std::vector<int>& list, const char* key) -> Expected<void> {
    for (const int core : list) {
      if (auto ok = check(core, key); !ok) {
        return ok;
      }
      if (std::count(list.begin(), list.end(), core) > 1) {
        return make_error(std::string("[engine] ") + key + ": core " + std::to_string(core) + " is named twice");
      }
      if (core == placement.worker_core && placement.busy) {
        return make_error(
            "[engine] core " + std::to_string(core) +
            " is both a lane's and the worker's, and both poll without sleeping: set worker_core to another core, "
            "or poll = \"adaptive\"");
      }
    }
    return {};
  };
  if (auto ok = check_list(options.cores, "cores"); !ok) {
    return tl::unexpected(ok.error());
  }
  if (auto ok = check_list(options.forwarder_cores, "forwarder_cores"); !ok) {
    return tl::unexpected(ok.error());
  }
  const std::vector<int>& forwarders = options.forwarder_cores;
  const auto is_forwarder = [&](int core) {
    return std::find(forwarders.begin(), forwarders.end(), core) != forwarders.end();
  };
  if (const auto both = std::find_if(options.cores.begin(), options.cores.end(), is_forwarder);
      both != options.cores.end() && placement.busy) {
    return make_error("[engine] core " + std::to_string(*both) +
                      " is in cores and in forwarder_cores, and both poll without sleeping: give the forwarder another "
                      "core, or leave forwarder_cores out");
  }
  placement.forwarder_cores.assign(
      forwarders.begin(),
      forwarders.begin() + std::min<std::ptrdiff_t>(std::min(lanes, threads_limit), std::ssize(forwarders)));

  const unsigned wanted = std::max(1U, forwarders.empty() ? std::min(lanes, threads_limit) : lanes);
  if (!options.cores.empty()) {
    placement.lane_cores.assign(options.cores.begin(),
                                options.cores.begin() + std::min<std::ptrdiff_t>(wanted, std::ssize(options.cores)));
  } else {
    // From the highest core down: the first one serves the kernel, the control thread and the worker.
    for (auto core = cores.rbegin(); core != cores.rend() && placement.lane_cores.size() < wanted; ++core) {
      const bool reserved =
          *core == placement.worker_core || (cores.size() > 1 && *core == cores.front()) || is_forwarder(*core);
      if (!reserved) {
        placement.lane_cores.push_back(*core);
      }
    }
    if (placement.lane_cores.empty()) {
      placement.lane_cores.push_back(cores.back());
    }
  }

  placement.text =
      std::to_string(cores.size()) + " cores (NUMA node of core " + std::to_string(placement.lane_cores.front()) +
      ": " + std::to_string(numa_node_of(placement.lane_cores.front())) + "), lanes on " + list(placement.lane_cores) +
      (forwarders.empty() ? std::string() : ", their forwarders on " + list(placement.forwarder_cores)) +
      (needs_worker ? ", worker on " + std::to_string(placement.worker_core) : std::string()) +
      (placement.busy ? ", busy polling" : ", adaptive polling") +
      (placement.scheduling == Scheduling::realtime ? " in real time" : "");
  if (wanted < lanes && threads_limit < lanes) {
    placement.text += "; " + std::to_string(lanes) + " lanes share " + std::to_string(placement.lane_cores.size()) +
                      " threads because a port has only " + std::to_string(threads_limit) + " transmit queues";
  }
  return placement;
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

bool pin_this_thread(int core, const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

}  // namespace sluice::engine
