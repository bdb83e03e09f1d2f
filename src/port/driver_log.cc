#include "port/driver_log.h"

#include <spdlog/spdlog.h>

#include <set>
#include <sstream>

#include "port/dpdk_log.h"

namespace sluice::port {

namespace {

// What memif and tap say at every start, because no other process of DPDK may take part.
bool is_always_said(const std::string& line) {
  return line.find("Failed to register mp action callback") != std::string::npos ||
         line.find("Failed to send start req to secondary") != std::string::npos;
}

// That, and what DPDK says about the driver and not the driver itself.
bool says_nothing_of_the_cause(const std::string& line) {
  return line.starts_with("EAL:") || line.starts_with("vdev_probe()") || line.starts_with("Port") ||
         is_always_said(line);
}

}  // namespace

DriverLog::DriverLog() {
  keep_dpdk_lines(true);
}

DriverLog::~DriverLog() {
  keep_dpdk_lines(false);
  std::istringstream lines(take_dpdk_lines());
  for (std::string line; std::getline(lines, line);) {
    spdlog::log(is_always_said(line) ? spdlog::level::debug : spdlog::level::warn, "DPDK: {}", line);
  }
}

std::string DriverLog::take() {
  std::istringstream lines(take_dpdk_lines());
  std::string words;
  std::set<std::string> said;
  for (std::string line; std::getline(lines, line);) {
    if (!says_nothing_of_the_cause(line) && said.insert(line).second) {
      words += (words.empty() ? "" : "; ") + line;
    }
  }
  return words;
}

}  // namespace sluice::port
