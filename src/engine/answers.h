// The trait of an element's type that may answer frames which it drops, as with an ICMP error.
#pragma once

#include <string_view>
#include <vector>

#include "packet/reason.h"

namespace sluice::engine {

class Answers {
 public:
  static constexpr std::string_view trait_name = "answers";
  // The reasons that it may answer. The API shows a counter for each, 0 too.
  virtual std::vector<packet::Reason> answered() const = 0;

 protected:
  ~Answers() = default;
};

}  // namespace sluice::engine
