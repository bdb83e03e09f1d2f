// Whether frames of a kernel interface may come straight from a host's kernel, with checksums left to a card that is
// not there: veth, TAP, bridges and other interfaces without hardware, and the virtual cards of guests.
//
// Thread-safety: any thread. Cost: three system calls.
#pragma once

#include <string>

namespace sluice::port {

// "veth", "virtio_net", …, as ethtool -i says; empty: it does not, or there is no such interface.
std::string interface_driver(const std::string& interface);

bool has_local_senders(const std::string& interface);

}  // namespace sluice::port
