// Addresses of the configuration on the twins of ports ([[port]] address), over rtnetlink.
//
// Only what was put there is ever taken away: an address that an interface has already is left to whoever put it there.
//
// Thread-safety: none (one caller at a time). Cost: two system calls for each address that comes or goes.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "port/options.h"

namespace sluice::control {

class TwinAddresses {
 public:
  // Adds what ports want and their twins do not have, then removes what was put there and no port wants any more. One
  // sentence on what changed; empty: nothing did. After an Error, which names the port and the address, what was added
  // stays: apply() what was in force before.
  Expected<std::string> apply(std::span<const port::PortOptions> ports);

 private:
  std::set<std::pair<std::string, port::InterfaceAddress>> ours_;  // by twin
};

// Whether the interface has an address that others than its own link's can reach, or passes its frames on to another
// interface of the host that stands on it (a bridge, a bond, a VLAN, a macvlan).
bool is_addressed(const std::string& interface);

}  // namespace sluice::control
