// What of a configuration keeps a chain from following conversations whole though it is no mistake: ports whose devices
// spread frames over receive queues by hashes of their own. A NIC's (RSS) most often takes no ports from behind IPv6's
// extension headers, packet sockets' takes none from behind an atomic fragment header, and what either makes of a frame
// is not known here. Which queue the rest of its conversation comes by cannot be known, so that Sluice cannot put such
// frames back. What it spreads itself over lanes that share one queue (engine/flow_spread.h) it spreads by
// packet/flow_hash.h, to which these headers and tags do not count.
//
// Thread-safety: none needed. Cost: control path.
#pragma once

#include <string>
#include <vector>

#include "engine/options.h"

namespace sluice::control {

// A sentence each, on which frames that concerns and what to set; usually none.
std::vector<std::string> conversation_notes(const engine::Options& options);

}  // namespace sluice::control
