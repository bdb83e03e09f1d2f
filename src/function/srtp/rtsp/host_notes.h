// What [srtp.rtsp] asks of a host that this one does not give.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/host_limits.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function::rtsp {

// With so many connections: two files each, and those of ports, twins and the rest.
std::uint64_t files_for(std::uint32_t connections);

// A sentence each; empty: all is well.
std::string files_note(const function::RtspOptions& options, std::uint64_t files);
// Of the explicit mode: ports that media have and the host's programs may be given.
std::string media_ports_note(const function::RtspOptions& options, const HostLimits& limits);

}  // namespace sluice::function::rtsp
