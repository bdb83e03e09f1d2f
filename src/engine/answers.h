// The trait of an element's type that may answer for frames which it drops, as with an ICMP error.
#pragma once

#include <string_view>
#include <vector>

#include "packet/reason.h"

namespace sluice::engine {

class Answers {
 public:
  static constexpr std::string_view trait_name = "answers";
  // For what it may: the API shows how often, 0 too.
  virtual std::vector<packet::Reason> answered() const = 0;

 protected:
  ~Answers() = default;
};

}  // namespace sluice::engine
