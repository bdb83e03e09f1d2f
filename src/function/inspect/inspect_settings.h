// The keys of [inspect].
#pragma once

#include <vector>

#include "base/option.h"
#include "function/inspect/inspect.h"

namespace sluice::function {

const std::vector<Option<InspectOptions>>& inspect_settings();
// Of a section without keys.
InspectOptions usual_inspect();

}  // namespace sluice::function
