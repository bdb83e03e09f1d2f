#include "crypto/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>

namespace sluice::crypto {

void wipe(void* bytes, std::size_t length) {
  OPENSSL_cleanse(bytes, length);
}

bool equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t length) {
  return CRYPTO_memcmp(a, b, length) == 0;
}

bool aes_ctr_keystream(std::span<const std::uint8_t> key, std::span<const std::uint8_t, 16> iv,
                       std::span<std::uint8_t> out) {
  const EVP_CIPHER* cipher = nullptr;
  if (key.size() == 16) {
    cipher = EVP_aes_128_ctr();
  } else if (key.size() == 32) {
    cipher = EVP_aes_256_ctr();
  } else {
    return false;
  }
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(EVP_CIPHER_CTX_new(),
                                                                                &EVP_CIPHER_CTX_free);
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  int written = 0;
  return context && EVP_EncryptInit_ex(context.get(), cipher, nullptr, key.data(), iv.data()) == 1 &&
         EVP_EncryptUpdate(context.get(), out.data(), &written, out.data(), static_cast<int>(out.size())) == 1 &&
         static_cast<std::size_t>(written) == out.size();
}

}  // namespace sluice::crypto
