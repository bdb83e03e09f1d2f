// Addresses of the configuration on the twins of ports ([[port]] address), over rtnetlink.
//
// Only what was put there is ever taken away: an address that an interface has already is left to whoever put it there.
// IPv6 addresses are put there without duplicate address detection, so that they serve at once: a router's are nobody
// else's.
//
// Thread-safety: any thread. Cost: two system calls for each address that is wanted, or goes.
#pragma once

#include <mutex>
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
  // What cannot be put back on a twin that had it is no Error: missing_addresses() has it.
  Expected<std::string> apply(std::span<const port::PortOptions> ports);

  // Puts back what the interface has lost of what was last applied, as the kernel takes IPv6 addresses from one that is
  // set down. How many came back.
  std::size_t restore(const std::string& twin);

  // Of the twin, as last applied.
  std::vector<port::InterfaceAddress> wanted(const std::string& twin);

 private:
  std::mutex mutex_;
  std::set<std::pair<std::string, port::InterfaceAddress>> wanted_;  // by twin, as last applied
  std::set<std::pair<std::string, port::InterfaceAddress>> ours_;    // by twin
};

// Why one cannot be put on the port's twin, as apply() says it: `why` is the end.
std::string address_refusal(const port::PortOptions& port, const port::InterfaceAddress& address,
                            const std::string& why);
// Such an end. `conf`: whose setting it is, an interface or "default".
std::string ipv6_is_off(const std::string& conf);

// Those of `wanted` that the interface does not have, whatever their prefixes' lengths.
std::vector<std::string> missing_addresses(const std::string& interface,
                                           std::span<const port::InterfaceAddress> wanted);

// Whether the interface has an address that others than its own link's can reach, or passes its frames on to another
// interface of the host that stands on it (a bridge, a bond, a VLAN, a macvlan).
bool is_addressed(const std::string& interface);

}  // namespace sluice::control
