// The trait of an element that shows its own state: the API has it under the element's name (GET /api/v1/functions).
#pragma once

#include <string>
#include <string_view>

namespace sluice::engine {

class View {
 public:
  static constexpr std::string_view trait_name = "view";
  // A JSON value, an object as a rule, of some kilobytes at most. On the API's threads, one call at a time, while lanes
  // run.
  virtual std::string view() const = 0;

 protected:
  ~View() = default;
};

}  // namespace sluice::engine
