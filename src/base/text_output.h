// Where a command's own text goes: standard output, unless that is for lines that another program reads (eve = "-").
//
// Thread-safety: any thread.
#pragma once

#include <cstdio>

namespace sluice {

// From now on, for as long as the program runs, standard output is for whoever calls this.
void reserve_standard_output();
// stdout, or stderr once stdout is reserved.
std::FILE* text_output();

}  // namespace sluice
