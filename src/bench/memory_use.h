// Where this process's memory is.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>

namespace sluice::cli::bench {

// What DPDK has given to pools and tables, on whatever pages.
std::uint64_t dpdk_bytes();

// Resident bytes by what is mapped: a file's path, "[heap]", or "anonymous"; mappings of one name together. Hugepages
// of hugetlbfs do not count as resident.
using Resident = std::map<std::string, std::uint64_t>;
Resident resident_by_mapping();
// From the text of /proc/PID/smaps.
Resident read_resident(std::istream& smaps);

// "+3732 KB [heap], +12 KB /usr/lib/libcuda.so.1": what has grown, the most first, at most `most` of them; "nothing".
std::string growth_text(const Resident& before, const Resident& after, std::size_t most);

}  // namespace sluice::cli::bench
