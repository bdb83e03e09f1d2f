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

// Whether a device ("net_vhost0,iface=/run/vm") of DPDK's own has a kernel, a guest or another program at its other end
// whose unfinished checksums its driver would not report.
bool leaves_checksums_open(const std::string& device);

}  // namespace sluice::port
