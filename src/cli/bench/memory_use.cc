#include "cli/bench/memory_use.h"

#include <rte_lcore.h>
#include <rte_malloc.h>

namespace sluice::cli::bench {

std::uint64_t dpdk_bytes() {
  std::uint64_t used = 0;
  for (unsigned i = 0; i < rte_socket_count(); ++i) {
    rte_malloc_socket_stats stats{};
    if (rte_malloc_get_socket_stats(static_cast<int>(rte_socket_id_by_idx(i)), &stats) == 0) {
      used += stats.heap_allocsz_bytes;
    }
  }
  return used;
}

}  // namespace sluice::cli::bench
