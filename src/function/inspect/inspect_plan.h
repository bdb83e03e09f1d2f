// What becomes of the section's settings where it runs: what of them each lane thread has.
#pragma once

#include <chrono>

#include "engine/element.h"
#include "function/inspect/batch_budget.h"
#include "function/inspect/inspect.h"

namespace sluice::function {

// Of tables and memory its share. Where nothing is forwarded nothing is dropped: who receives it gets it by another
// way, and what is not looked at together is looked at by itself.
InspectionSettings settings_of_thread(InspectionSettings settings, const engine::Plan& plan);
// `budget`: the section's; 0: as much as keeps frames on time, and no limit for captures.
BatchBudget budget_of(std::chrono::nanoseconds budget, const engine::Plan& plan);

}  // namespace sluice::function
