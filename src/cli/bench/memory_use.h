// What DPDK holds of this process's memory.
#pragma once

#include <cstdint>

namespace sluice::cli::bench {

// What it has given to pools and tables, on whatever pages.
std::uint64_t dpdk_bytes();

}  // namespace sluice::cli::bench
