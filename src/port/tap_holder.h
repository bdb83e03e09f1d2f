// Whether a TUN or TAP interface is held: some program has it open. DPDK's tap opens a multi-queue TAP of that name as
// one more queue, gives it another MAC address and takes it down when it fails, all under the program that has it.
//
// The kernel is asked over rtnetlink (Linux 4.17), which says so of an interface that is down, too, and opens nothing.
// Thread-safety: any thread. Cost: four system calls.
#pragma once

#include <string>

#include "base/error.h"

namespace sluice::port {

// False: nobody has it open (a persistent one may be without), it is no TUN or TAP, or there is none of that name in
// this network namespace. An error: the kernel did not say.
Expected<bool> tap_is_held(const std::string& interface);

// Whether there is a TAP of that name in this network namespace. An error: the kernel did not say.
Expected<bool> is_tap(const std::string& interface);

// "the TAP interface 'sl-lan' is in use by another program".
std::string tap_in_use(const std::string& interface);

}  // namespace sluice::port
