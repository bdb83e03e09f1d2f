#include "function/ipsec/own_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>

namespace sluice::function {

std::set<packet::IpAddress> own_addresses() {
  std::set<packet::IpAddress> found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    if (one->ifa_addr->sa_family == AF_INET) {
      found.insert(packet::IpAddress::from_bytes(4, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr));
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      found.insert(packet::IpAddress::from_bytes(6, &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr));
    }
  }
  freeifaddrs(all);
  return found;
}

}  // namespace sluice::function
