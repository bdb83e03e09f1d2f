// The traffic of a configuration's own elements (engine/calibration.h): of the first one of the chain that has some.
//
// Thread-safety: none. Cost: control path.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "control/config.h"
#include "engine/calibration.h"

namespace sluice::cli {

// The name of that element; empty: there is none, and frames stay as they come.
std::string traffic_element(const control::Config& config);

// A configuration's text without what would keep frames from the device, whatever its chain is.
std::string without_limits(std::string text);

engine::Calibration::Made made_streams(control::Config& config);

// Null: there is no such element. `most`: bytes of a frame in clear.
Expected<std::unique_ptr<engine::Traffic>> own_traffic(control::Config& config, unsigned most, unsigned lanes);

// Of all elements that there are, for --help.
std::string traffic_text();

}  // namespace sluice::cli
