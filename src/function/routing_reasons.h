// Reasons for which what has the trait Routing (routing.h) drops, and that others ask about.
#pragma once

#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason other_host =
    packet::register_reason("other_host", "a frame for another link address than the port's");

inline const packet::Reason unresolved = packet::register_reason(
    "unresolved",
    "the next hop's link address is not known yet, or no twin asks for it, or the gateway is on no link: ctl routes");
inline const packet::Reason too_big =
    packet::register_reason("too_big", "larger than the next link's MTU, and no ICMP error answers it");

}  // namespace sluice::function
