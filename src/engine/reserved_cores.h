// Keeps the cores of lanes, forwarders and the device's worker free of this process's other threads: the control
// thread and what it starts, the API's, DPDK's and CUDA's. The kernel's scheduler would now and then let one of them
// run beside a lane that polls, which then stands still for that long while another core idles.
//
// Only threads that may run wherever the caller may are moved; one that has been pinned stays. When no core would be
// left for them, none is moved. Threads started later inherit the choice of the thread that starts them.
#pragma once

#include <vector>

namespace sluice::engine {

class ReservedCores {
 public:
  // Cost: two or three calls of the kernel for each thread of the process. A thread that the kernel does not let be
  // moved stays.
  explicit ReservedCores(const std::vector<int>& cores);
  // The threads that were moved, and those they have started since, may run on every core again.
  ~ReservedCores();
  ReservedCores(const ReservedCores&) = delete;
  ReservedCores& operator=(const ReservedCores&) = delete;

 private:
  std::vector<int> all_;     // that the caller may run on
  std::vector<int> rest_;    // of them, those left for other threads; empty: nothing was done
  std::vector<int> pinned_;  // threads that were on just these before
};

// The cores that this process may use, ascending: those of the calling thread or, while cores are reserved, those of
// the thread that reserved them, before it did. Any thread.
std::vector<int> process_cores();

}  // namespace sluice::engine
