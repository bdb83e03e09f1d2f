// What the API shows of the element.
#include <nlohmann/json.hpp>

#include "function/ipsec/ipsec.h"

namespace sluice::function {

std::string Ipsec::view() const {
  if (!databases_) return "{}";
  return nlohmann::json{{"sas", databases_->sa_count()},
                        {"policies", databases_->policy_count()},
                        {"max_sas", options_.max_sas},
                        {"max_policies", options_.max_policies}}
      .dump();
}

}  // namespace sluice::function
