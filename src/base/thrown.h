// What an exception of a plug-in says.
#pragma once

#include <string>

namespace sluice {

// Only within a handler, such as catch (...): what() of the exception, as one line of printable ASCII; of one that is
// no std::exception, that it is none.
std::string what_was_thrown();

// From now on an exception that nothing catches ends the program with a line on standard error that has its what().
void name_last_exception();

}  // namespace sluice
