#include "engine/reserved_cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string>

#include "base/machine.h"

namespace sluice::engine {
namespace {

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    CPU_SET(core, &set);
  }
  return set;
}

// Every thread of this process that may run on exactly `from` may run on `to`.
void move_threads(const std::vector<int>& from, const std::vector<int>& to) {
  const cpu_set_t old_set = set_of(from);
  const cpu_set_t new_set = set_of(to);
  std::error_code ec;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ec)) {
    const std::string name = task.path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(thread, sizeof set, &set) == 0 && CPU_EQUAL(&set, &old_set)) {
      sched_setaffinity(thread, sizeof new_set, &new_set);
    }
  }
}

}  // namespace

ReservedCores::ReservedCores(const std::vector<int>& cores) : all_(allowed_cores()) {
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(rest_),
               [&](int core) { return std::find(cores.begin(), cores.end(), core) == cores.end(); });
  if (!rest_.empty() && rest_.size() != all_.size()) {
    move_threads(all_, rest_);
  }
}

ReservedCores::~ReservedCores() {
  if (!rest_.empty() && rest_.size() != all_.size()) {
    move_threads(rest_, all_);
  }
}

}  // namespace sluice::engine
