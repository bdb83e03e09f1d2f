#include "engine/reserved_cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <string>

#include "base/machine.h"

namespace sluice::engine {
namespace {

std::mutex mutex;
std::vector<int> whole;  // what the process may use, while some of it is reserved

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    CPU_SET(core, &set);
  }
  return set;
}

// The threads of this process that may run on exactly `cores`.
std::vector<pid_t> threads_on(const std::vector<int>& cores) {
  const cpu_set_t wanted = set_of(cores);
  std::vector<pid_t> found;
  std::error_code ec;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ec)) {
    const std::string name = task.path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(thread, sizeof set, &set) == 0 && CPU_EQUAL(&set, &wanted)) {
      found.push_back(thread);
    }
  }
  return found;
}

// Every thread that may run on exactly `from`, but for those of `stay`, may run on `to`. Again, until there is none:
// one that has not been moved yet may start another meanwhile.
void move_threads(const std::vector<int>& from, const std::vector<int>& to, const std::vector<pid_t>& stay) {
  constexpr unsigned most_rounds = 10;
  const cpu_set_t set = set_of(to);
  bool moved = true;
  for (unsigned round = 0; moved && round < most_rounds; ++round) {
    moved = false;
    for (const pid_t thread : threads_on(from)) {
      moved |=
          std::find(stay.begin(), stay.end(), thread) == stay.end() && sched_setaffinity(thread, sizeof set, &set) == 0;
    }
  }
}

}  // namespace

ReservedCores::ReservedCores(const std::vector<int>& cores) : all_(allowed_cores()) {
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(rest_),
               [&](int core) { return std::find(cores.begin(), cores.end(), core) == cores.end(); });
  if (rest_.empty() || rest_.size() == all_.size()) {
    rest_.clear();
    return;
  }
  {
    const std::lock_guard lock(mutex);
    whole = all_;
  }
  pinned_ = threads_on(rest_);
  move_threads(all_, rest_, {});
}

ReservedCores::~ReservedCores() {
  if (rest_.empty()) {
    return;
  }
  move_threads(rest_, all_, pinned_);
  const std::lock_guard lock(mutex);
  whole.clear();
}

std::vector<int> process_cores() {
  const std::lock_guard lock(mutex);
  return whole.empty() ? allowed_cores() : whole;
}

}  // namespace sluice::engine
