#include "port/driver_log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

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
  for (const DpdkLine& line : take_dpdk_lines()) {
    // The device is open: what was an error to its driver is a warning to us.
    const auto level = is_always_said(line.text) ? spdlog::level::debug : std::min(line.level, spdlog::level::warn);
    spdlog::log(level, "DPDK: {}", line.text);
  }
}

std::string DriverLog::take() {
  std::string words;
  std::set<std::string> said;
  for (const DpdkLine& line : take_dpdk_lines()) {
    if (says_nothing_of_the_cause(line.text)) {
      spdlog::debug("DPDK: {}", line.text);
    } else if (said.insert(line.text).second) {
      words += (words.empty() ? "" : "; ") + line.text;
    }
  }
  return words;
}

}  // namespace sluice::port
