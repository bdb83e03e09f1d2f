#include "cli/bench/memory_use.h"

#include <rte_lcore.h>
#include <rte_malloc.h>
#include <unistd.h>

#include <cstdio>

namespace sluice::cli::bench {

std::uint64_t resident_bytes() {
  unsigned long pages = 0;
  unsigned long resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu %lu", &pages, &resident) != 2) {
      resident = 0;
    }
    std::fclose(file);
  }
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

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
