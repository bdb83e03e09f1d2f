// What of [srtp] is no mistake, and will surprise all the same; and what a start would be refused for.
//
// Thread-safety: none needed. Cost: control path.
#pragma once

#include <string>
#include <vector>

#include "base/host_limits.h"
#include "engine/section_view.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function {

// Streams of the file that protect with one master key (shared_keys.h), a sentence each. For `check`: at a start and
// later the element says so itself, of the API's streams, too. The file has been checked.
std::vector<std::string> shared_key_notes(engine::SectionView& view);

// What [srtp.rtsp] says that clients will not like, a sentence each, for `check` and the start. `admits`: streams are
// admitted by a [profile].
std::vector<std::string> media_notes(const RtspOptions& options, bool admits);

// The same, and what [srtp.rtsp] asks of a host that this one does not give (rtsp/host_notes.h), a sentence each. For
// `check`, whose host may be another one: a start raises limits, and says of what it has.
std::vector<std::string> rtsp_notes(engine::SectionView& view, const HostLimits& limits);

// Ports of [srtp.rtsp] at which another program of this host listens, a sentence each.
std::vector<std::string> rtsp_lacks(engine::SectionView& view);

}  // namespace sluice::function
