#include "crypto/key.h"

namespace sluice::crypto {

std::string_view cipher_name(Cipher cipher) {
  switch (cipher) {
    case Cipher::none:
      return "none";
    case Cipher::aes_ctr_hmac_sha1:
      return "aes_ctr_hmac_sha1";
    case Cipher::aes_gcm:
      return "aes_gcm";
  }
  return "none";
}

}  // namespace sluice::crypto
