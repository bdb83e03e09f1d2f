#include "crypto/key.h"

#include "crypto/algorithm.h"

namespace sluice::crypto {

std::string_view cipher_name(Cipher cipher) {
  const Algorithm* const one = algorithm(cipher);
  return one == nullptr ? "none" : one->name;
}

}  // namespace sluice::crypto
