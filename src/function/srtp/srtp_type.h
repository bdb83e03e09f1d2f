// What the element "srtp" has outside of the packet path: its routes of the API, GET /api/v1/srtp and changes below it,
// the verbs of `sluice ctl srtp`, notes on its section, what its streams ask for, traffic for `sluice calibrate`.
#pragma once

#include <string_view>
#include <vector>

#include "engine/api.h"
#include "engine/verb.h"

namespace sluice::function {

const std::vector<engine::ApiRoute>& srtp_routes();
std::vector<engine::Verb> srtp_verbs();

// ElementType::find_trait
void* find_srtp_type_trait(std::string_view name);

}  // namespace sluice::function
