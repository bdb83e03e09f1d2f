// Streams that calibrate makes up for traffic of a configuration's element "srtp".
//
// Of each [[srtp.stream]] that unprotects a twin: a stream that protects with the same key and suite on addresses of
// its own, so that what it has sealed is what the other one unprotects (media_traffic.h). Nobody else could seal as
// fast.
//
// Where there are too few for traffic on every lane, others besides: with [srtp.rtsp], whose streams come with clients,
// always, of its suite. Else, where [[srtp.stream]] has fewer than there are lanes, of the kinds, families and suites
// of those in turn.
//
// Thread-safety: none. Cost: control path; a key of the system's random bytes for each.
#pragma once

#include <cstdint>

#include "engine/calibration.h"
#include "engine/section_view.h"

namespace sluice::function {

// As many as there are lanes, up to 256 where max_keys has capacity for them. Addresses are of 198.18.0.0/15 (RFC 2544)
// and 2001:2::/48 (RFC 5180), which are for benchmarks. Where max_keys has no capacity for all twins, the last ones are
// missing. The note says what was made and why; empty: there is nothing but twins.
engine::Calibration::Made made_streams(engine::SectionView& view);

// Twins have these addresses, and of both ports this and their number: as many streams unprotect before theirs.
inline constexpr const char* twin_source_v4 = "198.18.0.2";
inline constexpr const char* twin_source_v6 = "2001:2::2";
inline constexpr std::uint16_t first_twin_port = 30000, most_twins = 30000;

}  // namespace sluice::function
