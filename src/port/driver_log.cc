#include "port/driver_log.h"

#include <rte_log.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
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

DriverLog::DriverLog() : stream_(open_memstream(&text_, &length_)) {
  if (stream_ != nullptr) {
    rte_openlog_stream(stream_);
  }
}

DriverLog::~DriverLog() {
  if (stream_ == nullptr) {
    return;
  }
  log_dpdk();
  std::fclose(stream_);
  std::istringstream lines(std::string(text_, length_));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) {
      spdlog::log(is_always_said(line) ? spdlog::level::debug : spdlog::level::warn, "DPDK: {}", line);
    }
  }
  std::free(text_);
}

std::string DriverLog::take() {
  if (stream_ == nullptr) {
    return "";
  }
  std::fflush(stream_);
  std::istringstream lines(std::string(text_, length_));
  std::rewind(stream_);
  std::string words;
  std::set<std::string> said;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && !says_nothing_of_the_cause(line) && said.insert(line).second) {
      words += (words.empty() ? "" : "; ") + line;
    }
  }
  return words;
}

}  // namespace sluice::port
