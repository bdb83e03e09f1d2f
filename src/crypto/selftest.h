// Known answers through the code that packets take: FIPS-197 and SP 800-38A (AES), RFC 2202 (HMAC-SHA1), the GCM
// specification. To be run at every start before a key is used.
#pragma once

#include "base/error.h"
#include "crypto/cpu.h"

namespace sluice::crypto {

// The error names the vector that failed. About 6 ms.
Expected<void> self_test(Cpu& cpu);

}  // namespace sluice::crypto
