// The trait of an element that notices when it cannot do its work. /healthz, ctl, top and the metrics show it as
// `function_ailing` (control/health.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

struct Trouble {
  std::string what;    // "vxlan: 192.0.2.2 cannot be reached: the kernel has no route there"
  std::string remedy;  // what an administrator can do; empty: nothing
};

class SelfCheck {
 public:
  static constexpr std::string_view trait_name = "self_check";
  // What is wrong now, a few troubles at most. Called by any thread, while lanes run.
  virtual std::vector<Trouble> troubles() const = 0;

 protected:
  ~SelfCheck() = default;
};

}  // namespace sluice::engine
