// "Did you mean": the hint after an unknown word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. Cost: product of the
// lengths.
unsigned edit_distance(std::string_view a, std::string_view b);

// "; did you mean \"cycle\"?" when a known word is close (two edits, or one in a word of fewer than six letters), else
// "; known are a, b, c", else (nothing is known) "".
std::string spelling_hint(std::string_view word, const std::vector<std::string>& known);

}  // namespace sluice
