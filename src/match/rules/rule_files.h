// The files that an administrator names by patterns, as a shell would: "/etc/sluice/rules/*.rules".
//
// Thread-safety: any thread, no shared state. Cost: looks into the folders that are named.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace sluice::match {

// In the order of `names`; those of a pattern sorted by their bytes, each file once. A pattern is a name with *, ? or [
// for which there is no file (glob(7): files that begin with a dot only where the pattern does). A name without is
// itself, whether its file is there or not. An Error is for a pattern that no file matches, and for a folder in it that
// cannot be read.
Expected<std::vector<std::string>> rule_files(std::span<const std::string> names);

}  // namespace sluice::match
