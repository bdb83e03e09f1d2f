// What a medium that RTSP has opened is to the element "srtp": from the server RTP and RTCP that are protected with the
// medium's key, from the client RTCP that is unprotected with its own, or passes or is dropped where it named none.
//
// Thread-safety: any thread. No error names a key.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "function/srtp/media_stream.h"
#include "function/srtp/rtsp_options.h"
#include "media/rtsp/proxy.h"

namespace sluice::function::rtsp {

// The gateway's ports, by index, that each side's packets come in by; absent: any.
struct Sides {
  std::optional<std::uint16_t> client, server;
};

// The last one is the client's RTCP. Where the legs differ (an explicit proxy) each comes by the ends of one and leaves
// with those of the other, and so does what the client sends to RTP's port. That is nothing but to open ways back: it
// passes as it comes. `max_ssrcs`: of the server's RTP, and of its RTCP.
Expected<std::vector<function::MediaStreamSettings>> streams_of(
    const media::rtsp::Stream& stream, bool accept_clear_rtcp, const Sides& sides,
    std::uint32_t max_ssrcs = function::RtspOptions().max_ssrcs);

}  // namespace sluice::function::rtsp
