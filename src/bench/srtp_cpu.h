// intel-ipsec-mb on every core that this process may use, over the same packets, for comparison.
#pragma once

#include "base/error.h"
#include "bench/rig.h"
#include "bench/srtp_packets.h"

namespace sluice::cli::bench {

// Each core seals its own share of the packets, again and again, in bursts of 128; each has a Cpu of its own. Bytes as
// of SrtpPackets::bytes().
Expected<Outcome> seal_on_all_cores(SrtpPackets& packets, double seconds);

// Each packet once, so that it can be looked at.
Expected<void> seal_once_on_all_cores(SrtpPackets& packets);

}  // namespace sluice::cli::bench
