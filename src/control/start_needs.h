// What `sluice run` would refuse on this machine though the file is fine: files that cannot be written, a group that
// there is not, an address that is another machine's, what another program has, a GPU that is missing, too few open
// files.
//
// Thread-safety: none (control thread). Cost: some system calls. What is taken to see whether it is free (addresses,
// the API's socket, the locks of interfaces) is given back at once.
#pragma once

#include <string>
#include <vector>

#include "control/config.h"

namespace sluice::control {

// One sentence each, which names its setting, for Config::placed(). Interfaces, memory and cores have checks of their
// own (port/virtual_device.h, port/eal.h, busy_cores.h).
std::vector<std::string> find_start_lacks(Config& config);

// Whether a gateway of this very file (the path, links followed) runs: it answers at the API's address or socket. What
// it has is no lack. False as well where the API has no fixed place (port 0). Cost: when the place is taken, a request.
bool is_running(const Config& config);

// Why a file cannot be written there, in a sentence's middle; empty: it can. A file that is not there need not be. A
// pipe is opened for that, without waiting, and closed: a reader that ends with its last writer ends.
// `links`: as many symbolic links are followed.
std::string why_not_writable(const std::string& path, unsigned links = 8);

}  // namespace sluice::control
