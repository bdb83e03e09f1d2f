// DPDK's log, which by itself goes to stderr and to syslog, as part of ours.
#pragma once

#include <spdlog/common.h>

#include <string>
#include <vector>

namespace sluice::port {

// From now on, also before DPDK's environment is started, each line of DPDK's goes to spdlog's default logger, as
// "DPDK: LINE": what is an error there or worse is one here, a warning a warning, notices and information are info, the
// rest is debug. Which lines there are, DPDK's own levels still decide. May be called again. Any thread; a line costs
// what a line of the log costs.
void log_dpdk();

struct DpdkLine {
  spdlog::level::level_enum level;
  std::string text;
};

// From now on each line is kept instead, on whichever thread it is said; false: back to the log. What DriverLog stands
// on. Any thread.
void keep_dpdk_lines(bool keep);
// What was kept since the last call.
std::vector<DpdkLine> take_dpdk_lines();

}  // namespace sluice::port
