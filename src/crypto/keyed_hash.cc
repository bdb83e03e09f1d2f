#include "crypto/keyed_hash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstring>
#include <vector>

#include "crypto/secret.h"

namespace sluice::crypto {

std::uint64_t keyed_hash(std::span<const std::uint8_t, 32> key,
                         std::initializer_list<std::span<const std::uint8_t>> parts) {
  std::vector<std::uint8_t> all;
  std::size_t size = 0;
  for (const auto part : parts) size += sizeof size + part.size();
  all.reserve(size);  // so that no copy is left unwiped
  for (const auto part : parts) {
    const std::size_t length = part.size();
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&length);
    all.insert(all.end(), bytes, bytes + sizeof length);
    all.insert(all.end(), part.begin(), part.end());
  }
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> hash{};
  const bool done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), all.data(), all.size(), hash.data(),
                         nullptr) != nullptr;
  wipe(all.data(), all.size());
  std::uint64_t first = 0;
  std::memcpy(&first, hash.data(), sizeof first);
  return done ? first : 0;
}

}  // namespace sluice::crypto
