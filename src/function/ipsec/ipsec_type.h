// What the element "ipsec" has outside of the packet path: its routes of the API, below /api/v1/ipsec, the verbs of
// `sluice ctl ipsec`, notes on its section.
#pragma once

#include <string_view>
#include <vector>

#include "engine/api.h"
#include "engine/verb.h"

namespace sluice::function {

const std::vector<engine::ApiRoute>& ipsec_routes();
std::vector<engine::Verb> ipsec_verbs();

// ElementType::find_trait
void* find_ipsec_type_trait(std::string_view name);

}  // namespace sluice::function
