// What of [srtp] is no mistake, and will surprise all the same.
//
// Thread-safety: none needed. Cost: control path.
#pragma once

#include <string>
#include <vector>

#include "control/config.h"
#include "control/rtsp/host_limits.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::control {

// Streams of the file that protect with one master key (function/srtp/shared_keys.h), a sentence each. For `check`: at
// a start and later the element says so itself, of the API's streams, too. `config` has been checked.
std::vector<std::string> shared_key_notes(Config& config);

// The file has keys, and every user of the machine may read it; empty: not so. For `check` and the start.
std::string readable_keys_note(Config& config);

// What [srtp.rtsp] says that clients will not like, a sentence each, for `check` and the start. `admits`: streams are
// admitted by a [profile].
std::vector<std::string> media_notes(const function::RtspOptions& options, bool admits);

// The same, and what [srtp.rtsp] asks of a host that this one does not give (rtsp/host_limits.h), a sentence each. For
// `check`, whose host may be another one: a start raises limits, and says of what it has.
std::vector<std::string> rtsp_notes(Config& config, const rtsp::HostLimits& limits);

}  // namespace sluice::control
