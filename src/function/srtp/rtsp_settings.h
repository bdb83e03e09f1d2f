// Reads [srtp.rtsp] (docs/configuration.md).
#pragma once

#include "base/settings.h"
#include "engine/port_table.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function {

RtspOptions read_rtsp(Settings settings, const engine::PortTable& ports);

}  // namespace sluice::function
