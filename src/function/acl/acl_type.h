// What the element "acl" has outside of the packet path: its routes of the API, GET /api/v1/acl and those of sets below
// it, the verbs of `sluice ctl acl`, and the files of its section.
#pragma once

#include <string_view>
#include <vector>

#include "engine/api.h"
#include "engine/verb.h"

namespace sluice::function {

const std::vector<engine::ApiRoute>& acl_routes();
std::vector<engine::Verb> acl_verbs();

// ElementType::find_trait
void* find_acl_type_trait(std::string_view name);

}  // namespace sluice::function
