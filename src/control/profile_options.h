// [profile]: what `sluice calibrate` has measured, and what it decides.
#pragma once

#include <optional>
#include <string>

#include "engine/profile.h"

namespace sluice::control {

struct ProfileOptions {
  std::string file;                        // empty: none
  bool refuses_others = true;              // a profile of another machine, device or chain; else that is only said
  bool admits = true;                      // streams beyond what was measured are refused; else they are only counted
  bool counts_bursts = false;              // streams whose bursts do not fit into a cycle are refused; else it is said
  std::optional<engine::Profile> profile;  // of a file that could be read
};

}  // namespace sluice::control
