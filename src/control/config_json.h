// The configuration as it is in force, defaults filled in, as one JSON object with the file's own sections and keys.
// Sections of functions are in it once the functions are made (pipeline_maker.h), but for those that hide their values
// (Settings::hide_values): they may hold keys.
#pragma once

#include <string>

#include "control/config.h"

namespace sluice::control {

std::string config_json(const Config& config);

}  // namespace sluice::control
