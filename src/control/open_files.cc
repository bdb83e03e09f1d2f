#include "control/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "base/host_limits.h"

namespace sluice::control {
namespace {

// The API and its clients, netlink, logs, rules, captures that are read.
constexpr std::uint64_t of_the_program = 64;
// Its lock, its twin, what wakes its lanes; of AF_XDP the maps and the program.
constexpr std::uint64_t of_a_port = 10;
constexpr std::uint64_t of_a_queue = 4;

Expected<void> too_few(std::uint64_t needed, std::uint64_t limit) {
  const std::string wanted = std::to_string(needed);
  return make_error("this process may have " + std::to_string(limit) + " files open, and the gateway needs " + wanted +
                    ": ulimit -n " + wanted + ", or LimitNOFILE=" + wanted + " in a systemd unit");
}

}  // namespace

std::uint64_t open_files_needed(const engine::Options& options) {
  std::uint64_t needed = of_the_program;
  for (const port::PortOptions& port : options.ports) {
    needed += of_a_port + of_a_queue * std::max(port.queues, port.lane_count());
  }
  return needed;
}

Expected<void> check_open_files(const engine::Options& options) {
  const std::uint64_t needed = open_files_needed(options), limit = host_limits().files;
  return limit == 0 || limit >= needed ? Expected<void>() : too_few(needed, limit);
}

Expected<void> raise_open_files(const engine::Options& options) {
  const std::uint64_t needed = open_files_needed(options), limit = raise_file_limit(needed);
  return limit == 0 || limit >= needed ? Expected<void>() : too_few(needed, limit);
}

}  // namespace sluice::control
