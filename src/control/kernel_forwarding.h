// Whether the host's kernel forwards at all: a router whose twins it serves leaves to it what the fast path does not
// do.
//
// Any thread. Cost of forwarding_off(): a file of /proc for each twin and one more.
#pragma once

#include <string>
#include <vector>

namespace sluice::control {

struct ForwardingOff {
  std::string what;      // "IPv4 forwarding is off on sl-lan, sl-wan"; empty: nothing is off
  std::string settings;  // that sysctl -w takes to put it on
};

// What is off: IPv4 forwarding on a twin (the kernel asks the interface that a packet came in by), or IPv6 forwarding
// altogether, where a twin has an IPv6 address that is not its link's only. `root`: where /proc is looked for. A family
// that the kernel does not have is passed over.
ForwardingOff forwarding_off(const std::vector<std::string>& twins, const std::string& root = "");

// One line for the log that says what will not work and what to set; empty: nothing is off.
std::string forwarding_warning(const ForwardingOff& off);

}  // namespace sluice::control
