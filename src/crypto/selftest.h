// Known answers through the code that packets take, those of all registered algorithms (crypto/algorithm.h) and of what
// derives keys (SP 800-38A). To be run at every start before a key is used.
#pragma once

#include "base/error.h"
#include "crypto/cpu.h"

namespace sluice::crypto {

// The error names the vector that failed. About 6 ms.
Expected<void> self_test(Cpu& cpu);

}  // namespace sluice::crypto
