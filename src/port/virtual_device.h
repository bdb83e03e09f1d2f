// What DPDK 22.11's virtual devices must be given so that they carry a router's frames whole, and what they cannot do.
// docs/configuration.md has the same by driver, for users. Thread-safety: none of it keeps state. Cost: start only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"
#include "port/options.h"

namespace sluice::port {

// What is before the arguments: "net_tap0" of "net_tap0,iface=x".
std::string device_name(const std::string& device);

// Whether `device` ("net_tap0,iface=x") is one of `driver` ("net_tap").
bool is_driver(const std::string& device, const std::string& driver);

// Whether nothing is under the port but an element, which has the device's name: it makes the port's frames out of
// others' and takes those that leave by it (a tunnel). DPDK's device is a net_null that nothing is received from.
bool is_virtual(const std::string& device);
// A device name is such a one from now on; `name` lives as long as the program. Before lanes start.
void register_virtual_device(std::string_view name);

// The value of `key` in "net_x0,a=1,key=value", or empty.
std::string device_argument(const std::string& device, const std::string& key);

// What DPDK knows a virtual port by, which no device of a configuration is called.
std::string virtual_device_name(const PortOptions& port);
// Its link address: of the machine's id and the port's name, as systemd makes those of interfaces, so that it is the
// same after a restart; of a machine without an id a random one.
packet::MacAddress virtual_mac(const std::string& name);

// All values of `key`, for those that may be given more than once.
std::vector<std::string> device_arguments(const std::string& device, const std::string& key);

// Whether every port is one of net_pcap, and there are captures that are read to their end: where they are sent to, a
// file or an interface, does not matter.
bool only_read_captures(const std::vector<PortOptions>& ports);

// The device's arguments with those that follow from the other options: the queues of af_xdp, the buffers of memif.
// What the administrator wrote stays as it is.
std::string complete_arguments(const PortOptions& port, const MemoryOptions& memory);

// What of the port's settings alone cannot be, on whatever machine: frames that do not fit, arguments that contradict
// each other. The message says what to change.
Expected<void> check_sizes(const PortOptions& port, const MemoryOptions& memory);

// Why nobody sees how long frames of the port wait to be received, in one sentence; empty: that is seen (net_af_packet,
// replay), or nothing waits there (captures, net_ring, net_null). So a process that was held up shows fewer misses than
// there were.
std::string unseen_arrival(const std::string& device);

// What would open and then lose frames, or not open without a word why: an interface that is no Ethernet, frames that
// do not fit, queues of the interface that nobody would read, a TAP that another program has. The message says what to
// change. Looks at the interface, so the namespace must be its own. Captures: capture_file.h.
Expected<void> check_device(const PortOptions& port, const MemoryOptions& memory);

// The kernel's interface that a device receives from or, of net_pcap, sends to. Empty: it has none.
std::string live_interface(const std::string& device);

// Whether a device has exactly as many transmit queues in use as receive queues: with tap and af_xdp it does not start
// otherwise; with memif and ring the queue more would reach nobody.
bool pairs_queues(const std::string& driver);

// tap gives both ends of its interface the port's MAC address. The kernel takes frames for its own address and a bridge
// does not pass them on, so the kernel's end gets another one: `mac` with its last bit turned over. An address that the
// administrator chose by `mac=` is treated alike.
Expected<void> give_tap_its_own_mac(const std::string& interface, const packet::MacAddress& mac);

}  // namespace sluice::port
