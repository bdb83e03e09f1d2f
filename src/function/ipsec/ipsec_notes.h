// What of [ipsec] is no mistake, and will surprise all the same.
//
// Thread-safety: none needed. Cost: control path.
#pragma once

#include <string>
#include <vector>

#include "function/ipsec/ipsec_settings.h"

namespace sluice::function {

// A sentence each, however many SAs and policies it is about. `options` has no mistake.
std::vector<std::string> ipsec_notes(const IpsecOptions& options);

}  // namespace sluice::function
