// What [srtp] asks for its streams before any of them is there (engine/stream_source.h).
//
// Thread-safety: none. Cost: control path.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/section_view.h"
#include "engine/stream_source.h"

namespace sluice::function {

// The suites of [[srtp.stream]] and that of [srtp.rtsp], by name; both empty where there are none.
std::vector<std::string> stream_suites(engine::SectionView& view);
std::string rtsp_suite(engine::SectionView& view);

// The largest frame of media in clear, in bytes: of RTSP's, what the largest MTU leaves for them; and of all streams,
// whatever packet_bytes they have. 0: there are none.
std::uint32_t rtsp_largest_packet(engine::SectionView& view);
std::uint32_t largest_packet(engine::SectionView& view);

// In alphabetical order. Of [srtp.rtsp] the servers' media, by the families of `servers` and `listen`: the RTCP of
// clients, a twentieth at most, is not looked at.
std::vector<std::string> media_kinds(engine::SectionView& view);

// What [[srtp.stream]] says of each stream, in order. RTCP on ports of its own takes a twentieth besides. A deadline
// that is not given is the engine's, and packet_bytes what the largest MTU leaves.
std::vector<engine::StreamSource::Stream> described_streams(engine::SectionView& view);

}  // namespace sluice::function
