// Which cores run lanes and the device's worker.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/options.h"

namespace sluice::engine {

struct Placement {
  std::vector<int> lane_cores;       // one thread each; lanes are dealt to them in turn
  std::vector<int> forwarder_cores;  // one thread each; empty: lanes forward on the core on which they collect
  int worker_core = -1;              // -1: no worker
  bool busy = false;                 // poll without sleeping
  Scheduling scheduling = Scheduling::normal;
  std::string text;  // for the log: topology and choice
};

// Chooses from the cores that this process may use. Asked-for cores that do not exist or repeat are an error. `lanes`:
// how many there are; `threads_limit`: transmit queues of the port with the fewest, and so the most threads that may
// forward; `needs_worker`: a GPU is in use.
Expected<Placement> place(const Options& options, unsigned lanes, unsigned threads_limit, bool needs_worker);

// Pins the calling thread and names it; false when the kernel refuses.
bool pin_this_thread(int core, const std::string& name);
// False when the kernel refuses; place() has tried it before.
bool schedule_this_thread(Scheduling scheduling);
// An Error that says what to do when a thread that polls busily may not run in real time, or would be throttled.
Expected<void> check_scheduling(Scheduling scheduling, bool busy);

}  // namespace sluice::engine
