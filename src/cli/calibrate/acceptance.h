// Whether a configuration would take the profile that was measured of it, as `sluice check` and the start do: its bound
// with what was measured within its deadline, and a capacity for its cycle. Asked before minutes are spent, again when
// µ is known, and before the profile is written, so that none is written which its own configuration refuses.
//
// Thread-safety: none. Cost: control path; the configuration is read.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/profile.h"

namespace sluice::cli {

// `text`: the configuration, named `file`; `device`: in the place of the configuration's; empty: none. What it answers
// is for people: what of its streams does not fit the profile, a line each as `sluice check` says it; empty: all do.
// Streams that do not fit are no mistake of the profile's. An Error: why the profile is refused.
Expected<std::string> accept_profile(const std::string& text, const std::string& file, const std::string& device,
                                     const engine::Profile& profile);

}  // namespace sluice::cli
