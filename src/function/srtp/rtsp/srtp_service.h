// What the element "srtp" runs besides the packet path: its streams' upkeep of every second, and with [srtp.rtsp] the
// proxy.
#pragma once

#include <memory>

#include "engine/service.h"
#include "function/media_streams.h"

namespace sluice::function::rtsp {

// `streams` outlive it.
std::unique_ptr<engine::Service> make_srtp_service(MediaStreams& streams);

}  // namespace sluice::function::rtsp
