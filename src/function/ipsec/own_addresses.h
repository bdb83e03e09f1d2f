// The addresses of this host.
//
// Thread-safety: any thread. Cost: system calls; control path.
#pragma once

#include <set>

#include "packet/ip_address.h"

namespace sluice::function {

// Those that interfaces of the calling thread's network namespace have now.
std::set<packet::IpAddress> own_addresses();

}  // namespace sluice::function
