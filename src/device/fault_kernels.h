// Work that fails as GPUs fail, for tests: after it, the GPU is of no use to this process.
//
// On the SIMT shim its faults (simt/fault.h) stand in for them.
#pragma once

#include "base/error.h"
#include "device/gpu.h"

namespace sluice::device {

// A kernel that writes to an address that is not there.
Expected<void> launch_faulting(GpuStream& stream);
// One that never ends.
Expected<void> launch_endless(GpuStream& stream);

}  // namespace sluice::device
