// Ciphers that have a hash beside them: four algorithms each. For .cc files of this room only.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "crypto/algorithm.h"
#include "crypto/algorithms/expand.h"

namespace sluice::crypto {

inline constexpr std::array paired_hashes = {Hash::hmac_sha1, Hash::hmac_sha256, Hash::hmac_sha384, Hash::hmac_sha512};
// Something for each of the hashes.
template <class T>
using PerHash = std::array<T, paired_hashes.size()>;

// Known answers of a cipher, from its RFC. Its vectors have no tags: these were computed with Python's hmac.
struct CipherAnswer {
  std::string_view name, cipher_key, salt, clear, suffix, text, sealed, block;  // as of KnownAnswer
  PerHash<std::string_view> tags;  // as long as in ESP, under the key below
};

// The first bytes of this, as many as the digest has.
inline constexpr std::string_view paired_auth_key =
    "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
    "2122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f40";

template <std::size_t N>
constexpr PerHash<std::array<KnownAnswer, N>> with_hashes(const std::array<CipherAnswer, N>& answers) {
  PerHash<std::array<KnownAnswer, N>> all = {};
  for (std::size_t h = 0; h < all.size(); ++h) {
    for (std::size_t i = 0; i < N; ++i) {
      const CipherAnswer& one = answers[i];
      all[h][i] = {.name = one.name,
                   .cipher_key = one.cipher_key,
                   .salt = one.salt,
                   .auth_key = paired_auth_key.substr(0, 2 * digest_length(paired_hashes[h])),
                   .nonce = "00000000000000000000",
                   .clear = one.clear,
                   .suffix = one.suffix,
                   .text = one.text,
                   .sealed = one.sealed,
                   .tag = one.tags[h],
                   .block = one.block};
    }
  }
  return all;
}
template <std::size_t N>
constexpr PerHash<std::span<const KnownAnswer>> spans_of(const PerHash<std::array<KnownAnswer, N>>& answers) {
  return {answers[0], answers[1], answers[2], answers[3]};
}

constexpr PerHash<Algorithm> paired(Cipher cipher, const PerHash<std::string_view>& names,
                                    std::span<const std::size_t> key_lengths, std::size_t salt_length,
                                    const PerHash<std::span<const KnownAnswer>>& answers,
                                    void (*expand)(IMB_MGR*, const KeyMaterial&, Slot&)) {
  PerHash<Algorithm> all = {};
  for (std::size_t h = 0; h < all.size(); ++h) {
    all[h] = {.cipher = cipher,
              .hash = paired_hashes[h],
              .name = names[h],
              .key_lengths = key_lengths,
              .salt_length = salt_length,
              .auth_key = {1, hash_block(paired_hashes[h])},
              .tag = hmac_tags(paired_hashes[h]),
              .needs_gcm_key = false,
              .answers = answers[h],
              .expand = expand};
  }
  return all;
}

}  // namespace sluice::crypto
