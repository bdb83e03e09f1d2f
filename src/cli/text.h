// Numbers and tables for people (base/text_table.h), and what only this program's reports say.
#pragma once

#include <cstdint>
#include <string>

#include "base/text_table.h"

namespace sluice::cli {

// 90061 s: "1d 01:01:01".
std::string clock_text(std::uint64_t seconds);
// The engine's bound with what it does not hold for (engine/bound.h), so that it is not read as a limit of what was
// measured. On the CPU it is an estimate, and called one.
std::string bound_text(std::uint64_t ns, bool on_gpu);

}  // namespace sluice::cli
