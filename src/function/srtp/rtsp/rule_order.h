// Which rules of the kernel's routing come before those of the proxy (port/kernel_rules.h).
//
// Thread-safety: no state.
#pragma once

#include <string>
#include <vector>

#include "function/srtp/rtsp_options.h"
#include "port/kernel_rules.h"

namespace sluice::function::rtsp {

// Whether it takes frames of the proxy's before the proxy's own rules: those that come in by one of `twins`, to or from
// servers. Of one that is inverted it is said without a closer look.
bool comes_first(const port::KernelRule& rule, const function::RtspOptions& options,
                 const std::vector<std::string>& twins);

}  // namespace sluice::function::rtsp
