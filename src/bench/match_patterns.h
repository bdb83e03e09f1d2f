// The patterns that `bench match` and `bench fused` look for: of a file, or made up.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "match/automaton/pattern.h"

namespace sluice::cli::bench {

// A file of patterns, one a line, in hexadecimal digits; behind the digits ` nocase`, if case is to be folded. Empty
// lines, and what follows a '#', are skipped. An Error names the line.
Expected<std::vector<match::Pattern>> read_patterns(const std::string& path);

// The best pattern of each rule that loads, of those that are commented out, too; equal ones once. Errors: a file that
// cannot be read, or has none.
Expected<std::vector<match::Pattern>> patterns_of_rules(const std::string& path);

// As many, of lengths as the contents of rule sets have them (3 to 40 bytes, mostly 6 to 20), four in five of them text
// such as stands in requests, the others binary. The same ones on every machine.
std::vector<match::Pattern> make_patterns(unsigned count);

struct PatternChoice {
  std::string name;
  std::vector<match::Pattern> patterns;  // of at least two bytes
  std::size_t shortest() const;          // bytes of the shortest; 0: there is none
};

// What --patterns says: a file of patterns, or of detection rules if its name ends in .rules, how many to make up, or
// nothing, which makes up 2,775.
Expected<PatternChoice> choose_patterns(const std::string& option);

}  // namespace sluice::cli::bench
