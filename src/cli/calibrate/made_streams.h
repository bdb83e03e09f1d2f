// Streams that calibrate makes up where a configuration's stage "srtp" has too few for traffic on every lane: with
// [srtp.rtsp], whose streams come with clients, always; else where [[srtp.stream]] protects fewer over IPv4 than there
// are lanes.
//
// Thread-safety: none. Cost: control path; a key of the system's random bytes for each.
#pragma once

#include <string>

#include "control/config.h"

namespace sluice::cli {

struct MadeStreams {
  std::string text;  // [[srtp.stream]] sections, to be put behind the configuration's text; empty: none are needed
  std::string note;  // what was made and why, in a line
};
// As many as there are lanes, up to 256 where max_keys has room for them, of [srtp.rtsp]'s suite, else of those of
// [[srtp.stream]], else of the usual one. Addresses are of 198.18.0.0/15, which RFC 2544 has for benchmarks.
MadeStreams made_streams(control::Config& config);

}  // namespace sluice::cli
