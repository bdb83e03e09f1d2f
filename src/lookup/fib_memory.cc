#include <rte_mempool.h>
#include <rte_ring.h>

#include <bit>

#include "lookup/fib.h"
#include "lookup/fib_limits.h"

namespace sluice::lookup {

std::uint64_t Fib::memory_needed(int family, std::uint32_t max_routes) {
  constexpr std::uint64_t first_table = (1ULL << 24) * sizeof(std::uint32_t);
  constexpr std::uint64_t group = 256 * sizeof(std::uint32_t);
  // DPDK's RIB: a mempool of twice as many nodes as routes, whose free list is a ring.
  constexpr unsigned node_bytes = 64;
  const std::uint32_t nodes = 2 * (max_routes + (family == 4 ? extra_routes4 : extra_routes6));
  rte_mempool_objsz sizes;
  const std::uint64_t node = rte_mempool_calc_obj_size(node_bytes, 0, &sizes);
  return first_table + group * (default_groups(family, max_routes) + slack) + nodes * node +
         static_cast<std::uint64_t>(rte_ring_get_memsize(std::bit_ceil(nodes + 1)));
}

}  // namespace sluice::lookup
