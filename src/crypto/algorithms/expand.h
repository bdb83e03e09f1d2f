// Parts of expanding keys that several algorithms share. For .cc files of this room only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "crypto/algorithm.h"
#include "crypto/ipsec_mb.h"
#include "crypto/key.h"

namespace sluice::crypto {

// AES's round keys of a key of 16, 24 or 32 bytes, and how many rounds. `opens`: of the equivalent inverse cipher.
void expand_aes(IMB_MGR* manager, std::span<const std::uint8_t> cipher_key, Key& key, bool opens = false);
// HMAC's two states of the key's hash (RFC 2104), of a key of at most its block.
void expand_hmac(IMB_MGR* manager, std::span<const std::uint8_t> auth_key, Key& key);
// Both, of a key that has both; round keys as the cipher wants them for its direction.
void expand_aes_with_hmac(IMB_MGR* manager, const KeyMaterial& material, Slot& slot);
// What AES-GCM has for cores and for GPUs, and AES's round keys with it.
void expand_gcm(IMB_MGR* manager, std::span<const std::uint8_t> cipher_key, Slot& slot);

inline constexpr std::size_t aes_key_lengths[] = {16, 24, 32};
// The longest keys of HMAC: a block of the hash.
constexpr std::size_t hash_block(Hash hash) {
  return hash == Hash::hmac_sha384 || hash == Hash::hmac_sha512 ? 128 : 64;
}
// RFC 2104 5: as long as the digest, or shorter.
constexpr Lengths hmac_tags(Hash hash) {
  return {1, std::min(digest_length(hash), max_tag_length)};
}

}  // namespace sluice::crypto
