// Link types of one maker's devices: Juniper's routers, switches that tag frames for the processor that controls them
// (DSA), and some older ones. The contract of link_frame.h.
//
// Sources: tcpdump.org/linktypes.html; tcpdump's print-juniper.c, print-dsa.c, print-brcmtag.c, print-symantec.c.
#pragma once

#include <cstdint>

#include "port/link_frame.h"

namespace sluice::port::link {

// What a Juniper router puts before a frame of the link `inner`, or before a packet alone.
LinkFate juniper(std::uint32_t inner, Bytes frame, const std::function<void(Bytes)>& take);
// An Ethernet frame with a tag of `size` bytes behind its addresses.
LinkFate without_tag(std::size_t size, Bytes frame, const std::function<void(Bytes)>& take);
// An EtherType at `type`, what it is of at `packet`.
LinkFate typed_at(std::size_t type, std::size_t packet, Bytes frame, const std::function<void(Bytes)>& take);
// `type`: where ARCNET's protocol is; behind it a split flag and a number of two bytes (RFC 1201).
LinkFate arcnet(std::size_t type, Bytes frame, const std::function<void(Bytes)>& take);
// IP behind MPLS labels (RFC 3032), as IP; anything else with its labels.
LinkFate mpls(Bytes frame, const std::function<void(Bytes)>& take);

}  // namespace sluice::port::link
