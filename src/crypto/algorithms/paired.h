// Ciphers that have a hash beside them: four algorithms each. Their known answers are of the cipher, from its RFC,
// whose vectors have no tags: these were computed with Python's hmac. For .cc files of this room only.
#pragma once

#include <array>
#include <string_view>

#include "crypto/algorithm.h"
#include "crypto/algorithms/expand.h"

namespace sluice::crypto {

inline constexpr std::size_t paired_hashes = 4;
struct CipherAnswer {
  std::string_view name, cipher_key, salt, clear, suffix, text, sealed, block;  // as of KnownAnswer
  std::array<std::string_view, paired_hashes> tags;  // of each hash, as long as in ESP, under the key below
};

// The first bytes of this, as many as the digest has.
inline constexpr std::string_view paired_auth_key =
    "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
    "2122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f40";

template <std::size_t N>
constexpr std::array<KnownAnswer, N> with_hash(const std::array<CipherAnswer, N>& answers, Hash hash) {
  std::array<KnownAnswer, N> all = {};
  for (std::size_t i = 0; i < N; ++i) {
    const CipherAnswer& one = answers[i];
    all[i] = {.name = one.name,
              .cipher_key = one.cipher_key,
              .salt = one.salt,
              .auth_key = paired_auth_key.substr(0, 2 * digest_length(hash)),
              .nonce = "00000000000000000000",
              .clear = one.clear,
              .suffix = one.suffix,
              .text = one.text,
              .sealed = one.sealed,
              .tag = one.tags[static_cast<std::size_t>(hash) - 1],
              .block = one.block};
  }
  return all;
}

inline constexpr std::size_t aes_key_lengths[] = {16, 24, 32};
constexpr Algorithm paired(std::string_view name, Cipher cipher, Hash hash, std::size_t salt_length,
                           std::span<const KnownAnswer> answers, void (*expand)(IMB_MGR*, const KeyMaterial&, Slot&)) {
  return {.cipher = cipher,
          .hash = hash,
          .name = name,
          .key_lengths = aes_key_lengths,
          .salt_length = salt_length,
          .auth_key = {1, hash_block(hash)},
          .tag = hmac_tags(hash),
          .needs_gcm_key = false,
          .answers = answers,
          .expand = expand};
}

}  // namespace sluice::crypto
