// Whether the host's kernel forwards at all: a router whose twins it serves leaves to it what the fast path does not
// do.
//
// Any thread. Cost: a file of /proc for each twin and one more.
#pragma once

#include <string>
#include <vector>

namespace sluice::control {

// One line that says what will not work and what to set, when IPv4 forwarding is off on a twin (the kernel asks the
// interface that a packet came in by), or IPv6 forwarding altogether; empty: nothing is off. `root`: where /proc is
// looked for. A family that the kernel does not have is passed over.
std::string forwarding_warning(const std::vector<std::string>& twins, const std::string& root = "");

}  // namespace sluice::control
