// Reads [srtp.rtsp] (docs/configuration.md).
#pragma once

#include <string>
#include <vector>

#include "base/option_facts.h"
#include "base/settings.h"
#include "engine/port_table.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function {

// A line for each key that differs, which only a start can change; empty: none does.
std::string rtsp_changes(const RtspOptions& running, const RtspOptions& wanted);

// Its keys and those of its servers, for people.
std::vector<OptionSection> rtsp_sections();

RtspOptions read_rtsp(Settings settings, const engine::PortTable& ports);

}  // namespace sluice::function
