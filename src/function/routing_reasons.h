// Reasons for which what has the trait Routing (routing.h) drops, and that others ask about.
#pragma once

#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason other_host =
    packet::register_reason("other_host", "a frame for another link address than the port's");

}  // namespace sluice::function
