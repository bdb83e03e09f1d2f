// The keys of [route] itself, and its sections.
#pragma once

#include <vector>

#include "base/option.h"
#include "function/route/route.h"

namespace sluice::function {

const std::vector<Option<Router::RouterOptions>>& route_settings();
// Those of its sections, too, for people.
std::vector<OptionSection> route_sections();
// Reads all of it; what is wrong goes to the settings.
Router::RouterOptions read_route(Settings& settings, const engine::PortTable& ports);

}  // namespace sluice::function
