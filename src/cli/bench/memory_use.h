// What this process holds.
#pragma once

#include <cstdint>

namespace sluice::cli::bench {

std::uint64_t resident_bytes();  // hugepages are not counted there
std::uint64_t dpdk_bytes();      // what DPDK has given to pools and tables, on whatever pages

}  // namespace sluice::cli::bench
