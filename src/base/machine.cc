#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace sluice {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

// The number behind the word at the beginning of a line; `otherwise` when there is none.
std::uint64_t number_of(const std::string& path, const std::string& word, std::uint64_t otherwise) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    if (std::uint64_t number = 0; words >> first && first == word && words >> number) {
      return number;
    }
  }
  return otherwise;
}

// Of a file that is one number; cgroup v2 writes "max" for none.
std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
  std::uint64_t number = 0;
  std::ifstream file(path);
  return file >> number ? number : otherwise;
}

// How the two versions of control groups call the same.
struct GroupFiles {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* cache;  // in memory.stat
};
constexpr GroupFiles version1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                              "total_inactive_file"};
constexpr GroupFiles version2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// Where control groups are mounted. Where a new /sys hides them, as under `ip netns exec`, the first process's root has
// them still, if it can be read.
std::string mount_of(const std::string& root, const GroupFiles& files) {
  for (const char* view : {"", "/proc/1/root"}) {
    std::string mount = root + view + files.mount;
    std::error_code ec;
    if (std::filesystem::directory_iterator(mount, ec) != std::filesystem::directory_iterator()) {
      return mount;
    }
  }
  return root + files.mount;
}

// The least that the group and those above it leave. In a container its path may be one of the host's, which is not
// there; what is mounted is its own group then.
std::uint64_t left_in_group(const std::string& root, const GroupFiles& files, std::filesystem::path group) {
  std::uint64_t left = unlimited;
  const std::string mount = mount_of(root, files);
  for (;; group = group.parent_path()) {
    const std::string folder = mount + group.string() + "/";
    if (const std::uint64_t limit = number_in(folder + files.limit, unlimited); limit != unlimited) {
      const std::uint64_t usage = number_in(folder + files.usage, 0);
      const std::uint64_t cache = number_of(folder + "memory.stat", files.cache, 0);
      const std::uint64_t held = usage - std::min(usage, cache);
      left = std::min(left, limit - std::min(limit, held));
    }
    if (group == group.parent_path()) {
      return left;
    }
  }
}

}  // namespace

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

std::string machine_text(const std::string& root) {
  std::ifstream file(root + "/proc/cpuinfo");
  std::string name = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      name = line.substr(colon + 2);
      break;
    }
  }
  const std::size_t cores = allowed_cores().size();
  return name + ", " + std::to_string(cores) + (cores == 1 ? " core" : " cores");
}

std::uint64_t resident_bytes() {
  std::uint64_t size = 0;
  std::uint64_t resident = 0;  // both in pages
  std::ifstream file("/proc/self/statm");
  return file >> size >> resident ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

std::string resident_text(bool hugepages) {
  return std::to_string(resident_bytes() >> 20) + " MB resident" + (hugepages ? " besides the hugepages" : "");
}

AvailableMemory available_memory(const std::string& root) {
  const std::uint64_t kilobytes = number_of(root + "/proc/meminfo", "MemAvailable:", unlimited >> 10);
  AvailableMemory available{kilobytes << 10, false};
  std::ifstream groups(root + "/proc/self/cgroup");  // lines "4:memory:/path" or, version 2, "0::/path"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = std::min(line.find(':'), line.size());
    const std::size_t second = std::min(line.find(':', first + 1), line.size());
    const std::string controllers = line.substr(first, second - first) + ",";
    const bool is_version2 = line.starts_with("0::");
    if (second == line.size() || (!is_version2 && controllers.find("memory,") == std::string::npos)) {
      continue;
    }
    const std::uint64_t left = left_in_group(root, is_version2 ? version2 : version1, line.substr(second + 1));
    if (left < available.bytes) {
      available = {left, true};
    }
  }
  return available;
}

}  // namespace sluice
