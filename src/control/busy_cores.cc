#include "control/busy_cores.h"

#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

namespace sluice::control {
namespace {

constexpr std::chrono::milliseconds window{100};  // ten of the kernel's ticks
constexpr unsigned windows = 3;                   // so that what is over in a moment is not refused
constexpr std::uint64_t busy_percent = 50;

struct NamedCore {
  int core;
  const char* key;
  std::uint64_t percent = 0;  // the least of all windows
};

std::vector<NamedCore> named_cores(const engine::Options& options) {
  std::vector<NamedCore> named;
  for (const int core : options.cores) named.push_back({core, "cores"});
  for (const int core : options.forwarder_cores) named.push_back({core, "forwarder_cores"});
  for (const int core : options.compute_cores) named.push_back({core, "compute_cores"});
  if (options.worker_core >= 0 && options.device != "cpu") named.push_back({options.worker_core, "worker_core"});
  return named;
}

std::uint64_t percent_busy(const CoreTime& before, const CoreTime& after) {
  const std::uint64_t busy = after.busy - before.busy;
  const std::uint64_t idle = after.idle > before.idle ? after.idle - before.idle : 0;
  return busy + idle == 0 ? 0 : 100 * busy / (busy + idle);
}

}  // namespace

std::map<int, CoreTime> core_times(const std::string& proc_stat) {
  std::map<int, CoreTime> times;
  std::istringstream lines(proc_stat);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.size() < 4 || std::isdigit(static_cast<unsigned char>(line[3])) == 0) continue;
    std::istringstream fields(line.substr(3));
    int core = -1;
    std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
    fields >> core >> user >> nice >> system >> idle >> iowait >> irq >> softirq;
    times[core] = {user + nice + system + irq + softirq, idle + iowait};
  }
  return times;
}

Expected<void> check_cores_are_free(const engine::Options& options, const std::function<std::string()>& read,
                                    const std::function<void(std::chrono::milliseconds)>& wait) {
  std::vector<NamedCore> suspects = named_cores(options);
  for (unsigned i = 0; i < windows && !suspects.empty(); ++i) {
    auto before = core_times(read());
    wait(window);
    auto after = core_times(read());
    std::erase_if(suspects, [&](NamedCore& named) {
      const std::uint64_t percent = percent_busy(before[named.core], after[named.core]);
      named.percent = i == 0 ? percent : std::min(named.percent, percent);
      return percent <= busy_percent;
    });
  }
  if (suspects.empty()) return {};
  std::string lines;
  for (const NamedCore& busy : suspects) {
    lines +=
        (lines.empty() ? "" : "\n") + std::string("[engine] ") + busy.key + ": core " + std::to_string(busy.core) +
        " is " + std::to_string(busy.percent) +
        "% busy with other work (ps -eLo psr,pcpu,pid,comm --sort=-pcpu says whose): move that, name another core, "
        "or set busy_cores = \"allow\"";
  }
  return make_error(lines);
}

Expected<void> check_cores_are_free(const engine::Options& options) {
  const auto read = [] {
    std::ifstream file("/proc/stat");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return check_cores_are_free(options, read, [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); });
}

}  // namespace sluice::control
