#pragma once

#include <string>
#include <vector>

#include "engine/section_view.h"

namespace sluice::function {

// A sentence for each port of a bridge whose frames nobody can have meant to go where they go: out of it again, to a
// port that another element keeps, or nowhere. One port alone is a loopback, of which nothing is said.
std::vector<std::string> peer_notes(const engine::SectionView& view);

}  // namespace sluice::function
