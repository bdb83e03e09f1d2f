// What people need to know of settings, whatever they are read into (option.h makes it of the declarations): for the
// reference of docs/configuration.md, `sluice functions` and completion. Texts are Markdown.
//
// Thread-safety: as const objects.
#pragma once

#include <string>
#include <vector>

namespace sluice {

struct OptionFacts {
  std::string key;
  std::string values;  // with their bounds and unit
  std::string usual;   // without the key in the file; empty: nothing
  bool reloads = false;
  std::string text;
};

struct OptionSection {
  std::string title;      // as a file has it: "[acl]", "[[acl.rule]]"
  std::string text = {};  // a sentence on the section; empty: its keys say it
  std::vector<OptionFacts> options = {};
};

}  // namespace sluice
