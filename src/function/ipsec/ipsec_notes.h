// What of [ipsec] is no mistake, and will surprise all the same.
//
// Thread-safety: none needed. Cost: control path.
#pragma once

#include <string>
#include <vector>

#include "engine/port_table.h"
#include "function/ipsec/ipsec_settings.h"

namespace sluice::function {

// A sentence each, however many SAs and policies it is about, behind the line of the first one. `options` has no
// mistake. `ports`: of the file; without ports nothing is said of them. `at_start`: a port without addresses in the
// file is about to get them from somebody else, and may get any. Asks the kernel for this host's addresses.
std::vector<std::string> ipsec_notes(const IpsecOptions& options, const engine::PortTable& ports = engine::PortTable(),
                                     bool at_start = false);

// Why a start would be refused on this host now.
std::vector<std::string> ipsec_lacks(const IpsecOptions& options);

}  // namespace sluice::function
