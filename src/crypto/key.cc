#include "crypto/key.h"

#include "crypto/algorithm.h"

namespace sluice::crypto {

std::string_view algorithm_name(Cipher cipher, Hash hash) {
  const Algorithm* const one = algorithm(cipher, hash);
  return one == nullptr ? "none" : one->name;
}

}  // namespace sluice::crypto
