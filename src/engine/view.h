// The trait of an element that shows its own state in the API (GET /api/v1/functions).
#pragma once

#include <string>
#include <string_view>

namespace sluice::engine {

class View {
 public:
  static constexpr std::string_view trait_name = "view";
  // The state as a JSON value, usually an object, of a few kilobytes at most. Called by the API's threads while lanes
  // run, one call at a time.
  virtual std::string view() const = 0;

 protected:
  ~View() = default;
};

}  // namespace sluice::engine
