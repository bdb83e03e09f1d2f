// Copies between host memory and a GPU's memory, either way, waited for: for control paths and benches.
#pragma once

#include <cstddef>

#include "base/error.h"
#include "device/gpu.h"

namespace sluice::device {

// Returns when `bytes` are at `to`. Any host memory. Not beside another thread that uses stream 0.
Expected<void> copy(Gpu& gpu, void* to, const void* from, std::size_t bytes);

}  // namespace sluice::device
