// Whether keys of a configuration are everybody's.
#pragma once

#include <string>
#include <string_view>

#include "engine/section_view.h"

namespace sluice::function {

// A note for `check` and the start: the section has entries [[SECTION.list]], in which keys are, and every user of the
// machine may read the file. Empty: not so. Control path.
std::string readable_keys_note(engine::SectionView& view, std::string_view list);

}  // namespace sluice::function
