// libsrtp on every core, with packets and streams of the same number and sizes, for comparison. It is loaded when it is
// asked for (libsrtp2.so.1), so that nothing else needs it.
#pragma once

#include <memory>

#include "base/error.h"
#include "cli/bench/rig.h"
#include "cli/bench/srtp_packets.h"

namespace sluice::cli::bench {

class LibSrtp {
 public:
  // An Error when the library is not there, or does not start.
  static Expected<std::unique_ptr<LibSrtp>> load();
  virtual ~LibSrtp() = default;

  // Each core protects the packets of its own streams again and again, a session for each stream, as a server has it.
  // An Error when it has not the suite, or refuses a packet. Bytes as of SrtpPackets::bytes().
  virtual Expected<Outcome> protect_on_all_cores(const SrtpPackets& packets, const SrtpSuite& suite,
                                                 std::uint32_t streams, double seconds) = 0;
};

}  // namespace sluice::cli::bench
