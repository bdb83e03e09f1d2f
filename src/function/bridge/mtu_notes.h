#pragma once

#include <string>
#include <vector>

#include "port/options.h"

namespace sluice::function {

// A sentence for each port whose peer has a smaller MTU: a bridge loses what is longer.
std::vector<std::string> mtu_notes(const std::vector<port::PortOptions>& ports);

}  // namespace sluice::function
