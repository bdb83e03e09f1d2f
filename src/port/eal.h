// Starts DPDK's environment for this process: packet memory, drivers, no probing of devices that were not asked for.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "port/options.h"

namespace sluice::port {

struct EalReport {
  bool hugepages = false;
  std::string text;  // one line for the log: what memory is used and why
};

// Once per process, from the control thread. DPDK's log, its first lines too, becomes part of ours (dpdk_log.h).
// Hugepages when `memory` allows them and enough are free; otherwise ordinary pages ("--no-huge"), which every port
// works with. Drivers come from DPDK's own folder, from SLUICE_PMD_DIR, or from ../pmds beside the program. Errors:
// less memory available than `memory` asks for, too few hugepages with hugepages = "require" (says how many are missing
// and how to get them), missing privilege, an EAL that does not start.
Expected<EalReport> start_eal(const MemoryOptions& memory, const std::vector<PortOptions>& ports);
void stop_eal();

// The Error of start_eal() when this machine, or the memory limit of the control group (container) that this process is
// in, has not what `memory` and the receive rings of the ports' packet sockets ask for at this moment. Starts nothing.
Expected<void> check_memory(const MemoryOptions& memory, const std::vector<PortOptions>& ports);

}  // namespace sluice::port
