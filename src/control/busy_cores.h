// Whether other programs are at work on the cores that the configuration gives to lanes and workers: those would then
// wait for the scheduler and miss deadlines.
//
// Thread-safety: none needed. Cost: 100 ms when all are idle, 300 ms when one seems busy; nothing when no core is
// named.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "base/error.h"
#include "engine/options.h"

namespace sluice::control {

// Since boot, in ticks of the kernel's.
struct CoreTime {
  std::uint64_t busy = 0, idle = 0;
};

// By core, from the text of /proc/stat. What a hypervisor took is neither busy nor idle.
std::map<int, CoreTime> core_times(const std::string& proc_stat);

// Looks at the cores that `options` name, before any of our threads runs on them. An Error has a line for each on which
// others were at work more than half of the time, three times in a row. `read` and `wait`: for tests.
Expected<void> check_cores_are_free(const engine::Options& options, const std::function<std::string()>& read,
                                    const std::function<void(std::chrono::milliseconds)>& wait);
Expected<void> check_cores_are_free(const engine::Options& options);

}  // namespace sluice::control
