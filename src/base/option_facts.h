// Facts on settings for people: for the reference in docs/configuration.md, `sluice functions` and bash completion.
// option.h makes them of the declarations. Texts are Markdown.
//
// Thread-safety: as const objects.
#pragma once

#include <string>
#include <vector>

namespace sluice {

struct OptionFacts {
  std::string key;
  std::string values;  // the allowed values, with bounds and unit
  std::string usual;   // the default; empty: there is none
  bool reloads = false;
  std::string text;
};

struct OptionSection {
  std::string title;      // as a file has it: "[acl]", "[[acl.rule]]"
  std::string text = {};  // a sentence on the section; empty: its keys say enough
  std::vector<OptionFacts> options = {};
};

}  // namespace sluice
