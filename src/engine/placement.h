// Which cores run lanes, their forwarders and the device's worker.
//
// A lane reads its port's descriptors and writes the frames that the port's device has put into memory, so its core is
// best on the NUMA node of that device; the worker's on the node of the GPU. Cores that the configuration names are
// taken as they are.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/options.h"
#include "engine/topology.h"

namespace sluice::engine {

// What is to be placed.
struct Demand {
  struct Port {
    std::string name;
    int node = -1;  // NUMA node of its device; -1: any
    unsigned lanes = 1;
    unsigned queues = 1;
  };
  std::vector<Port> ports;     // their lanes are numbered from the first port's first on
  unsigned threads_limit = 1;  // transmit queues of the port with the fewest, and so the most threads that may forward
  bool needs_worker = false;   // a GPU is in use
  int gpu_node = -1;           // -1: any
  std::vector<int> more_gpu_nodes = {};  // of further GPUs, each of which has a worker of its own
  // The lanes of one number of all ports share a thread: a function follows conversations, whose two directions a
  // symmetric hash brings to the same number. Then all ports have as many queues and lanes, and the number of threads
  // divides that of lanes.
  bool paired = false;
};

struct Placement {
  std::vector<int> lane_cores;         // one thread each; lanes are dealt to them in turn
  std::vector<int> forwarder_cores;    // one thread each; empty: lanes forward on the core on which they collect
  std::vector<int> compute_cores;      // one helper each (compute_helpers.h)
  int worker_core = -1;                // -1: no worker
  std::vector<int> more_worker_cores;  // of further GPUs' workers; one that has another's where there are too few
  bool busy = false;                   // poll without sleeping
  Scheduling scheduling = Scheduling::normal;
  std::vector<std::string> notes;  // for the log: topology and choice, then what lies on another node than it should

  // Of every thread here.
  std::vector<int> cores() const;
  std::vector<int> worker_cores() const;
};

// Chooses from the machine's cores. Asked-for cores that do not exist or repeat are an error, and so are ports and
// cores with which lanes that are to be paired cannot be.
Expected<Placement> place(const Options& options, const Topology& machine, const Demand& demand);

// Whether lanes poll without sleeping on a machine with so many cores.
bool polls_busily(Poll poll, std::size_t cores);
// Pins the calling thread and names it; false when the kernel refuses.
bool pin_this_thread(int core, const std::string& name);
// False when the kernel refuses; place() has tried it before.
bool schedule_this_thread(Scheduling scheduling);
// An Error that says what to do when a thread that polls busily may not run in real time, or would be throttled.
Expected<void> check_scheduling(Scheduling scheduling, bool busy);

}  // namespace sluice::engine
