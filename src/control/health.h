// Why a running gateway is less than well: what /healthz, ctl and top say. A pure function of its argument.
#pragma once

#include <string>

#include "control/snapshot.h"

namespace sluice::control {

// Each ailment with what to do, on one line; empty: all is well.
std::string ailments(const Snapshot& snapshot);

}  // namespace sluice::control
