// The readers of [engine], [memory] and [[port]]: each takes the file's settings, fills options, and records mistakes.
#pragma once

#include "base/settings.h"
#include "engine/options.h"

namespace sluice::control {

void read_engine(Settings root, engine::Options& options);
void read_memory(Settings root, port::MemoryOptions& memory);
// Also checks what one port says against the others.
void read_ports(Settings& root, std::vector<port::PortOptions>& ports);
// What sections say together: frames that memory cannot hold, frames larger than their room. Needs all three read.
void check_memory(Settings root, const engine::Options& options);

}  // namespace sluice::control
