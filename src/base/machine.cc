#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      cores.push_back(cpu);
    }
  }
  return cores;
}

int numa_node_of_core(int core) {
  std::error_code ec;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/devices/system/cpu/cpu" + std::to_string(core), ec)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node")) {
      return std::stoi(name.substr(4));
    }
  }
  return 0;
}

int numa_node_of_device(const std::string& folder) {
  int node = -1;
  std::ifstream file(folder + "/numa_node");
  return file >> node ? node : -1;
}

std::uint64_t resident_bytes() {
  std::uint64_t size = 0;
  std::uint64_t resident = 0;  // both in pages
  std::ifstream file("/proc/self/statm");
  return file >> size >> resident ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace sluice
