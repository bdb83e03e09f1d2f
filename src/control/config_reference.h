// The reference of the configuration: every section with its keys, of which docs/configuration.md has the tables
// (scripts/config-reference) and `sluice functions --reference` shows those of plug-ins, too.
//
// Thread-safety: none (elements may be added meanwhile).
#pragma once

#include <string>
#include <vector>

#include "base/option_facts.h"
#include "engine/element.h"

namespace sluice::control {

// The file's own sections, as they stand in the page.
std::vector<OptionSection> file_sections();
// An element's own section first. One that declares no settings has that one alone.
std::vector<OptionSection> sections_of(const engine::ElementType& type);

// Markdown: a comment with the title, the text, a row for each key, and a comment at the end.
std::string reference(const OptionSection& section);
// Of all sections, those of elements by name, a blank line between them.
std::string reference();

}  // namespace sluice::control
