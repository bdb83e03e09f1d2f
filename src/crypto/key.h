// Expanded keys as devices read them: one entry of 320 bytes for each key, and for AES-GCM a table of the powers of H
// beside it. All of it bytes or native words, no pointers: the memory of a KeyTable may be read by a GPU as it is, or
// be copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace sluice::crypto {

// A registered Algorithm's number (crypto/algorithm.h), as keys carry it to every device.
enum class Cipher : std::uint8_t {
  none,               // an empty slot
  aes_ctr_hmac_sha1,  // AES in counter mode, then HMAC-SHA1 over the ciphertext (RFC 3711, 6188)
  aes_gcm,            // RFC 7714
  null_hmac_sha1,     // HMAC-SHA1 alone, the text in clear (RFC 2410, 2404)
};
std::string_view cipher_name(Cipher cipher);

inline constexpr std::size_t max_tag_length = 20;
inline constexpr std::size_t sha1_length = 20;
inline constexpr std::size_t aes_block = 16;

struct alignas(64) Key {
  std::uint8_t
      round_keys[15][aes_block];  // FIPS-197 order; rounds + 1 of them; for enciphering, which is all that is needed
  std::uint8_t salt_block[aes_block];  // the salt, left-aligned: 14 bytes (CTR) or 12 (GCM), then zeros
  std::uint8_t h[aes_block];           // aes_gcm: E(K, 0)
  std::uint32_t hmac_inner[5];         // aes_ctr_hmac_sha1: SHA-1's state after the block of key XOR ipad
  std::uint32_t hmac_outer[5];         // the same of key XOR opad
  Cipher cipher;
  std::uint8_t rounds;      // of AES: 10, 12 or 14; 0: no AES
  std::uint8_t tag_length;  // bytes: 4, 10 or 20 of HMAC-SHA1 (anything from 1 to 20), 16 of GCM
};
static_assert(sizeof(Key) == 320 && std::is_trivially_copyable_v<Key>);
// Of the cipher's key, in bytes.
constexpr std::size_t key_length(const Key& key) {
  return key.rounds == 0 ? 0 : std::size_t{4} * (key.rounds - 6);
}

// power[i] is H^(i+1) in GCM's order of bits and bytes (SP 800-38D 6.3): 32 threads that take every 32nd block each
// need H^32 and one of the others.
inline constexpr std::size_t hash_powers = 32;
struct alignas(64) HashPowers {
  std::uint8_t power[hash_powers][aes_block];
};

// One slot for a device that keeps a copy of the table: what its kernels read, and the slot's number. A wiped slot is
// zeros.
inline constexpr std::size_t device_hash_powers = 8;
struct alignas(64) KeyRecord {
  Key key;
  std::uint8_t power[device_hash_powers][aes_block];  // as of HashPowers
  std::uint32_t slot;
};
static_assert(sizeof(KeyRecord) == 512);

}  // namespace sluice::crypto
