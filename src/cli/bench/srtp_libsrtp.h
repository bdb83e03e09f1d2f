// libsrtp on every core, with packets and streams of the same number and sizes, for comparison. It is loaded when it is
// asked for (libsrtp_api.h). A process for each core: Debian's libsrtp does its
// cryptography by NSS, whose locks let the threads of one process wait for each other (two threads are slower than
// one).
#pragma once

#include "base/error.h"
#include "cli/bench/rig.h"
#include "cli/bench/srtp_packets.h"

namespace sluice::cli::bench {

// Each core protects the packets of its own streams again and again, a session for each stream, as a server has it. An
// Error when the library is not there or does not start, has not the suite, or refuses a packet. Bytes as of
// SrtpPackets::bytes().
Expected<Outcome> libsrtp_on_all_cores(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                                       double seconds);

}  // namespace sluice::cli::bench
