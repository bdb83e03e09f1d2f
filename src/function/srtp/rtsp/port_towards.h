// By which port of the gateway the host's routes lead to an address, and so by which its packets are due: what the
// proxy knows of a server's side.
//
// Thread-safety: any thread. Cost: a question to the kernel (rtnetlink), estimated at 20 us.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "packet/ip_address.h"

namespace sluice::function::rtsp {

// The place among `twins` of the interface that the route goes by, as it is now. Nothing where the route has several
// next hops or leads elsewhere, where there is none, and where the kernel does not say (before 4.13).
std::optional<std::uint16_t> port_towards(const packet::IpAddress& address, const std::vector<std::string>& twins);

}  // namespace sluice::function::rtsp
