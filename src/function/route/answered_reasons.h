// Reasons for which the router drops and that it may answer for, on routes that the kernel does not have.
#pragma once

#include "function/routing_reasons.h"
#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason ttl_expired =
    packet::register_reason("ttl_expired", "TTL or hop limit ran out, and no ICMP error answers it");

}  // namespace sluice::function
