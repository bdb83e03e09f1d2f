// Expanded keys as devices read them: one entry of 448 bytes for each key. All of it bytes or native words, no
// pointers: the memory of a KeyTable may be read by a GPU as it is, or be copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace sluice::crypto {

// What a packet is enciphered by. The AEADs authenticate it, too; with the others a Hash does, over what has been
// enciphered. Which pairs there are, the registry says (crypto/algorithm.h).
enum class Cipher : std::uint8_t {
  none,                   // an empty slot
  null,                   // in clear (RFC 2410)
  aes_ctr,                // counter mode as of SRTP (RFC 3711, 6188)
  aes_gcm,                // as of SRTP (RFC 7714)
  aes_cbc,                // RFC 3602
  aes_ctr_esp,            // RFC 3686
  aes_gcm_esp,            // RFC 4106
  chacha20_poly1305_esp,  // RFC 7634
};
enum class Hash : std::uint8_t {
  none,         // the cipher is an AEAD
  hmac_sha1,    // RFC 2404
  hmac_sha256,  // RFC 4868, as those below
  hmac_sha384,
  hmac_sha512,
};
// "aes_cbc_hmac_sha256"; "none" of a pair that is not registered.
std::string_view algorithm_name(Cipher cipher, Hash hash);

inline constexpr std::size_t max_tag_length = 32;  // RFC 4868's longest
inline constexpr std::size_t sha1_length = 20;
inline constexpr std::size_t aes_block = 16;

// Of the whole digest, in bytes.
constexpr std::size_t digest_length(Hash hash) {
  constexpr std::size_t lengths[] = {0, sha1_length, 32, 48, 64};
  return lengths[static_cast<std::size_t>(hash)];
}
// The explicit IV at the end of a packet's clear part, in bytes (job.h).
constexpr std::size_t explicit_iv_length(Cipher cipher) {
  return cipher == Cipher::aes_cbc ? aes_block : cipher >= Cipher::aes_ctr_esp ? 8 : 0;
}

// A hash's state after one block, in its own words: 5 (SHA-1) or 8 (SHA-256) of 32 bits, 8 of 64 (SHA-384, SHA-512).
union HashState {
  std::uint32_t word32[16];
  std::uint64_t word64[8];
};
struct HmacStates {
  HashState inner;  // after the block of key XOR ipad (RFC 2104)
  HashState outer;  // of key XOR opad
};

// How many powers of H a Key has: eight threads that take every eighth block each need H^8 and one of the others.
inline constexpr std::size_t hash_powers = 8;

struct alignas(64) Key {
  Cipher cipher;
  Hash hash;
  std::uint8_t rounds;      // of AES: 10, 12 or 14; 0: no AES
  std::uint8_t tag_length;  // bytes
  std::uint8_t opens;       // aes_cbc: 1 if the slot is for opening, 0 for sealing. Of no meaning for the others
  std::uint8_t unused[11];
  std::uint8_t salt_block[aes_block];  // the salt, left-aligned: 14 bytes (aes_ctr), 12 (aes_gcm) or 4, then zeros
  union {
    HmacStates hmac;                             // with a hash
    std::uint8_t power[hash_powers][aes_block];  // AES-GCM: [i] is H^(i+1), H being E(K, 0), in GCM's order of bits and
  };                                             // bytes (SP 800-38D 6.3)
  // rounds + 1 of them, in the order of use. FIPS-197's for enciphering; where `opens`, those of the equivalent inverse
  // cipher (FIPS-197 5.3.5). ChaCha20: the 32 bytes of the key.
  alignas(64) std::uint8_t round_keys[15][aes_block];  // from a cache line on, so that an SRTP key is in five of them
};
static_assert(sizeof(Key) == 448 && std::is_trivially_copyable_v<Key>);
static_assert(offsetof(Key, power) % aes_block == 0 && offsetof(Key, round_keys) % aes_block == 0);
// Of the cipher's key, in bytes.
constexpr std::size_t key_length(const Key& key) {
  if (key.cipher == Cipher::chacha20_poly1305_esp) return 32;
  return key.rounds == 0 ? 0 : std::size_t{4} * (key.rounds - 6);
}

// One slot for a device that keeps a copy of the table: what its kernels read, and the slot's number. A wiped slot is
// zeros.
struct alignas(64) KeyRecord {
  Key key;
  std::uint32_t slot;
};
static_assert(sizeof(KeyRecord) == 512);

}  // namespace sluice::crypto
