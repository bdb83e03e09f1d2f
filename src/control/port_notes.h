// What ports say together that is no mistake and seldom what was meant: one subnet on two of them, a bridge between
// two MTUs.
//
// Thread-safety: any thread. Cost: the pairs of ports and their addresses, start only.
#pragma once

#include <string>
#include <vector>

#include "engine/options.h"

namespace sluice::control {

// A sentence each.
std::vector<std::string> port_notes(const engine::Options& options);

}  // namespace sluice::control
