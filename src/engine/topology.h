// Where the cores are that this process may use: what placement.h chooses from, and what a test makes up.
#pragma once

#include <vector>

namespace sluice::engine {

struct Topology {
  std::vector<int> cores;  // ascending
  std::vector<int> nodes;  // the NUMA node of each

  bool has(int core) const;
  // -1: none of the cores.
  int node_of(int core) const;
  unsigned node_count() const;
};

// This machine, as far as the calling thread may use it.
Topology this_machine();

}  // namespace sluice::engine
