// The arguments of DPDK 22.11's virtual devices, which its drivers check badly: some ignore every argument when they do
// not know one, take a word for the number 0, or refuse with a cause that is not the one.
//
// Looks at nothing but the text. Thread-safety: none of it keeps state. Cost: start only.
#pragma once

#include <string>

#include "base/error.h"

namespace sluice::port {

// An Error, which says what to write instead, for a virtual device ("net_tap0,iface=x") that would not open or not as
// its arguments say. That is one that its driver does not know, or that is no number where the driver reads one; one
// that is there twice; one that it cannot do without; a kind that cannot be a port of Sluice. So is a known kind under
// a name that the rest of Sluice does not know it by ("eth_tap0", DPDK's of old; "net_tap_lan", which is no number).
// Whether what the arguments name is there is found at the start.
Expected<void> check_arguments(const std::string& device);

}  // namespace sluice::port
