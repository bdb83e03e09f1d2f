// Small pieces of a rule's text. Views into what is given; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::match {

std::string_view trimmed(std::string_view text);
// At each `separator`; the pieces are trimmed. An empty text is one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);
// At the commas outside of brackets; the pieces are trimmed.
std::vector<std::string_view> split_group(std::string_view text);
// Takes the next word off the front: up to a blank outside of brackets; empty at the end.
std::string_view take_word(std::string_view& text);
// Decimal, or hexadecimal after 0x; a sign may be before it. Nothing for any other text, or what 64 bits cannot hold.
std::optional<std::int64_t> number_of(std::string_view text);
std::string lower_case(std::string_view text);
// "'text' is no number from MIN to MAX"
std::string no_number(std::string_view text, std::int64_t min, std::int64_t max);
// Without its quotes, if it has both.
std::string_view unquoted(std::string_view text);
// Backslashes before ; : " \ , taken off; others stay.
std::string unescaped(std::string_view text);

}  // namespace sluice::match
