#include "bench/memory_use.h"

#include <rte_lcore.h>
#include <rte_malloc.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

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

Resident read_resident(std::istream& smaps) {
  Resident resident;
  std::string name;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string first, skipped;
    words >> first;
    if (first == "Rss:") {
      std::uint64_t kilobytes = 0;
      words >> kilobytes;
      resident[name] += kilobytes << 10;
    } else if (!first.ends_with(':')) {  // ADDRESSES PERMISSIONS OFFSET DEVICE INODE [NAME]
      for (int i = 0; i < 4; ++i) {
        words >> skipped;
      }
      name.clear();
      std::getline(words >> std::ws, name);
      if (name.empty()) {
        name = "anonymous";
      }
    }
  }
  return resident;
}

Resident resident_by_mapping() {
  std::ifstream smaps("/proc/self/smaps");
  return read_resident(smaps);
}

std::string growth_text(const Resident& before, const Resident& after, std::size_t most) {
  std::vector<std::pair<std::uint64_t, std::string>> grown;
  for (const auto& [name, bytes] : after) {
    const auto earlier = before.find(name);
    const std::uint64_t then = earlier == before.end() ? 0 : earlier->second;
    if (bytes > then) {
      grown.emplace_back(bytes - then, name);
    }
  }
  std::ranges::sort(grown, std::greater<>());
  grown.resize(std::min(grown.size(), most));
  std::string text;
  for (const auto& [bytes, name] : grown) {
    text += fmt::format("{}+{} KB {}", text.empty() ? "" : ", ", bytes >> 10, name);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace sluice::cli::bench
