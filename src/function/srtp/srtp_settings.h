// The keys of [srtp] itself.
#pragma once

#include <vector>

#include "base/option.h"
#include "function/srtp/srtp.h"

namespace sluice::function {

const std::vector<Option<Srtp::SrtpOptions>>& srtp_settings();

}  // namespace sluice::function
