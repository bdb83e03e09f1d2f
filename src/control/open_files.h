// How many files a gateway may have open (RLIMIT_NOFILE): sockets of ports, twins and the API, logs. With too few of
// them interfaces seem to be missing, and drivers fail without a word why.
//
// Thread-safety: any thread. Cost: control path, some system calls.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "engine/options.h"

namespace sluice::control {

// An estimate that is enough, without the connections of an RTSP proxy (rtsp/host_limits.h).
std::uint64_t open_files_needed(const engine::Options& options);

// An Error where this process cannot have so many; it says how to get them.
Expected<void> check_open_files(const engine::Options& options);

// The same, and raises the limit to what is needed.
Expected<void> raise_open_files(const engine::Options& options);

}  // namespace sluice::control
