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
  std::optional<engine::Profile> profile;  // of a file that could be read
};

}  // namespace sluice::control
