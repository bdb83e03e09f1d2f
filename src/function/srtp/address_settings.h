// Addresses of [srtp] that stand in no packet which a gateway forwards, so that what they are given for would never be
// found, and its media would go on as they come.
//
// Thread-safety: any thread.
#pragma once

#include <string>

#include "packet/ip_address.h"

namespace sluice::function {

// `host`: of one that answers, such as a server.
enum class AddressUse : std::uint8_t { source, destination, host };

// IPv4-mapped ones, the unspecified and loopback; as a source or a host multicast and broadcast, too. Why, and what to
// write instead; empty: it may be there.
std::string why_in_no_packet(const packet::IpAddress& address, AddressUse use);

// Multicast and broadcast. A router leaves what goes there to the host before any element is asked (engine/element.h):
// a stream that stands before one would pass as it comes, and this is said of it.
bool is_of_many(const packet::IpAddress& address);
inline constexpr const char* many_before_router =
    "is of many hosts: a router leaves what goes there to the host as it comes, and this element does not see it. In a "
    "chain that ends in \"bridge\" it does";

// Of a prefix that lies in the IPv4-mapped ones the IPv4 prefix that is meant; else it itself.
packet::IpPrefix without_mapping(const packet::IpPrefix& prefix);

}  // namespace sluice::function
