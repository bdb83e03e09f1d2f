#include "engine/topology.h"

#include <algorithm>
#include <set>

#include "base/machine.h"
#include "engine/reserved_cores.h"

namespace sluice::engine {

bool Topology::has(int core) const {
  return std::binary_search(cores.begin(), cores.end(), core);
}

int Topology::node_of(int core) const {
  const auto found = std::lower_bound(cores.begin(), cores.end(), core);
  return found != cores.end() && *found == core ? nodes[static_cast<std::size_t>(found - cores.begin())] : -1;
}

unsigned Topology::node_count() const {
  return static_cast<unsigned>(std::set<int>(nodes.begin(), nodes.end()).size());
}

Topology this_machine() {
  Topology machine;
  machine.cores = process_cores();
  for (const int core : machine.cores) {
    machine.nodes.push_back(numa_node_of_core(core));
  }
  return machine;
}

}  // namespace sluice::engine
