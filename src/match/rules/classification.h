// Class types of rules with their priorities, and systems of references with their URLs: what classification.config
// and reference.config say.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::match {

struct ClassType {
  std::string description;
  std::uint8_t priority = 3;
};

class Classification {
 public:
  // The class types that Snort and Suricata come with.
  static Classification defaults();

  // "short-name,Description,PRIORITY"
  Expected<void> add_class(std::string_view line);
  // "system URL-prefix"
  Expected<void> add_reference(std::string_view line);

  // nullptr: not known.
  const ClassType* find(std::string_view name) const;
  const std::string* url_of(std::string_view system) const;

 private:
  std::map<std::string, ClassType, std::less<>> classes_;
  std::map<std::string, std::string, std::less<>> urls_;
};

}  // namespace sluice::match
