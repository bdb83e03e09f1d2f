// Reasons for which the router drops and that it may answer for, on routes that the kernel does not have.
#pragma once

#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason ttl_expired =
    packet::register_reason("ttl_expired", "TTL or hop limit ran out, and no ICMP error answers it");
inline const packet::Reason too_big =
    packet::register_reason("too_big", "larger than the next link's MTU, and no ICMP error answers it");

}  // namespace sluice::function
