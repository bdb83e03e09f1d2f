// What to do about a text that is no TOML. Thread-safety: no state.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// What to write instead where the cause is a common one (a text without quotes, True, two values for a key, a list
// without brackets, ...). Empty: none of those, or a number, date or list that is wrong in itself, of which toml++ says
// what is wrong. `text`: the whole file; `line`, `column`: of the mistake, from 1; `description`: what toml++ says of
// it.
std::string syntax_advice(std::string_view text, unsigned line, unsigned column, std::string_view description);

}  // namespace sluice
