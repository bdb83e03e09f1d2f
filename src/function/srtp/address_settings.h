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

// Of a prefix that lies in the IPv4-mapped ones the IPv4 prefix that is meant; else it itself.
packet::IpPrefix without_mapping(const packet::IpPrefix& prefix);

}  // namespace sluice::function
