// Whether a packet that came in was protected as its inbound policy says (RFC 4301 section 5.2 step 4).
//
// Thread-safety: any thread. Cost: some ns, and the lines of policy and SA that lanes read.
#pragma once

#include <span>

#include "ipsec/policy_entry.h"
#include "ipsec/sa.h"

namespace sluice::ipsec {

// `opened`: the SAs that the packet came out of, the outermost first. True, as Linux has it: each template that is not
// optional has an SA of its protocol, mode, reqid, SPI and tunnel, the last template the outermost one, and no tunnel
// is left that no template asks for. Bypass takes what came in clear, or in transport mode; discard takes nothing.
bool satisfies(const PolicyEntry& policy, std::span<const Sa* const> opened);

}  // namespace sluice::ipsec
