// The elements acl and inspect with a core beside them that says what each frame's fate must be, for verify_chain()
// (inspect_chain.h).
#pragma once

#include <memory>
#include <vector>

#include "bench/inspect_chain.h"
#include "engine/element.h"
#include "function/inspect/inspect.h"
#include "lookup/acl/acl_rule.h"

namespace sluice::cli::bench {

// Each frame's verdict beside the first match of the rules, tried one after the other. `check`, whose `lanes` and
// `frames_per_lane` say what is wanted, is filled in while it runs, and outlives the element.
std::unique_ptr<engine::Element> compared_acl(const std::vector<lookup::acl::AclRule>& rules, ChainCheck& check);

// Each frame's verdict, with its reason, beside that of an inspection without a device; alerts and what `check` counts
// of conversations when the element has stopped.
std::unique_ptr<engine::Element> compared_inspect(const function::InspectOptions& options, ChainCheck& check);

}  // namespace sluice::cli::bench
