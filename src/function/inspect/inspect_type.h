// What the element "inspect" has outside of the packet path: the files of its section, and for what it may answer.
#pragma once

#include <string_view>

namespace sluice::function {

// ElementType::find_trait
void* find_inspect_type_trait(std::string_view name);

}  // namespace sluice::function
