// Rules of the host's nftables that check sources by the way back (`fib saddr ...`, and ip6tables' `-m rpfilter` over
// nftables): what IPv6 has in place of rp_filter. Frames of the fast path do not pass them.
//
// Rules of the older ip6tables (x_tables) are not found. Formats: linux/netfilter/nf_tables.h. Any bytes are safe.
// Thread-safety: any. Cost: find_source_rules() reads all rules once.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/netlink.h"

namespace sluice::control::netlink {

// The chain of each such rule among these messages (NFT_MSG_NEWRULE), once: "table inet filter chain PREROUTING".
void add_source_rules(NetlinkBytes messages, std::vector<std::string>& chains);

// Of the network namespace of the calling thread; none also where the kernel has no nftables. Error: the rules cannot
// be read.
Expected<std::vector<std::string>> find_source_rules();

}  // namespace sluice::control::netlink
