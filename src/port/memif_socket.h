// The socket file of a memif server that was killed stays, and DPDK's driver does not bind to one that is there.
#pragma once

#include <string>

namespace sluice::port {

// Removes the file where `device` is a memif server whose socket is a file that nobody listens at, and warns that it
// has. Cost: three system calls. Thread-safety: none.
void remove_stale_socket(const std::string& device);

}  // namespace sluice::port
