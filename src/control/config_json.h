// The configuration as it is in force, defaults filled in, as one JSON object with the file's own sections and keys.
// Sections of functions are not in it (they may hold keys).
#pragma once

#include <string>

#include "control/config.h"

namespace sluice::control {

std::string config_json(const Config& config);

}  // namespace sluice::control
