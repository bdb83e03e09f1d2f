// libsrtp on every core, with packets and streams of the same number and sizes, for comparison. It is loaded when it is
// asked for (libsrtp_api.h). A process for each core: Debian's libsrtp does its
// cryptography by NSS, whose locks let the threads of one process wait for each other (two threads are slower than
// one).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/rig.h"
#include "bench/srtp_packets.h"

namespace sluice::cli::bench {

class LibsrtpOnAllCores {
 public:
  // A session for each stream, as a server has it, and of up to 64 of each core the first packet, protected and opened
  // by Sluice's own code (sealed_check.h). An Error when the library is not there or does not start, has not the suite,
  // or what it has protected is not right. `packets` need not stay.
  static Expected<std::unique_ptr<LibsrtpOnAllCores>> start(const SrtpPackets& packets, const SrtpSuite& suite,
                                                            std::uint32_t streams);
  LibsrtpOnAllCores(const LibsrtpOnAllCores&) = delete;
  ~LibsrtpOnAllCores();

  // Each core protects the packets of its own streams again and again. An Error when the library refuses one. Bytes as
  // of SrtpPackets::bytes().
  Expected<Outcome> protect(double seconds);

 private:
  struct Shared;
  class Core;
  struct Unmapped {
    void operator()(Shared* shared) const;
  };
  LibsrtpOnAllCores(std::unique_ptr<Shared, Unmapped> shared) : shared_(std::move(shared)) {}
  [[noreturn]] static void run_process(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                                       std::size_t core, Shared& shared);
  static Error protect_share(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                             std::size_t core, Shared& shared);
  Expected<void> await_all();

  std::unique_ptr<Shared, Unmapped> shared_;
  std::vector<pid_t> processes_;
};

// In rounds (rounds.h).
Expected<Outcome> libsrtp_on_all_cores(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                                       double seconds);

}  // namespace sluice::cli::bench
