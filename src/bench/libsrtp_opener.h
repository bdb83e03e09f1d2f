// SRTP of several streams, opened by libsrtp in this process: for a sample of what a benchmark has protected, by code
// that is not Sluice's. Threads: any; they wait for each other (Debian's libsrtp is slower on two than on one).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "bench/libsrtp_api.h"
#include "media/secret.h"
#include "media/srtp/suite.h"

namespace sluice::cli::bench {

class LibsrtpOpener {
 public:
  // An Error when libsrtp is not there, does not start or has not the suite.
  static Expected<std::unique_ptr<LibsrtpOpener>> make(srtp::Suite suite);
  LibsrtpOpener(const LibsrtpOpener&) = delete;
  ~LibsrtpOpener();

  // In place, from RTP's first byte to the end of the tag: how many bytes it has in clear. `key`: the stream's; the
  // first packet of a stream makes its session. An Error says what libsrtp says.
  Expected<std::size_t> open(std::uint32_t stream, const media::MasterKey& key, std::span<std::uint8_t> packet);

 private:
  LibsrtpOpener(const LibsrtpApi& api, ChooseLibsrtpSuite suite) : api_(api), suite_(suite) {}
  Expected<srtp_t> session(std::uint32_t stream, const media::MasterKey& key);

  const LibsrtpApi api_;
  const ChooseLibsrtpSuite suite_;
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, srtp_t> sessions_;
};

}  // namespace sluice::cli::bench
