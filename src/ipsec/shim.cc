#include "ipsec/security_association.h"

namespace sluice::ipsec {

std::string SaId::str() const {
  return (protocol == Protocol::esp ? "esp " : "ah ") + std::to_string(spi) + " to " + destination.str();
}

}  // namespace sluice::ipsec
