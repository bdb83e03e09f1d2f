// Words of a file in a message: they cannot send commands to the terminal, fill it, or break the line.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// Bytes that are no printable ASCII show as ?.
std::string printable(std::string_view text);

// 'text' in quotes: bytes that are no printable ASCII show as ?, and of more than 60 the first 60 and "...".
std::string in_quotes(std::string_view text);

}  // namespace sluice
