#include "media/srtp/key_derivation.h"

#include <algorithm>
#include <string>

namespace sluice::srtp {
namespace {

// RFC 3711 section 4.3.2; SRTCP's are three above.
enum Label : std::uint8_t { cipher_label = 0, auth_label = 1, salt_label = 2, rtcp_labels = 3 };

// The counter block key_id XOR master_salt, times 2^16: key_id is the label and 48 bits of period, right-aligned in 112
// bits. A GCM salt of 12 bytes is followed by two zeros (RFC 7714 section 11).
bool derive_one(std::span<const std::uint8_t> key, std::span<const std::uint8_t> salt, unsigned label,
                std::uint64_t period, std::span<std::uint8_t> out) {
  crypto::Secret<crypto::aes_block> block;
  std::copy(salt.begin(), salt.end(), block.bytes);
  block.bytes[7] ^= static_cast<std::uint8_t>(label);
  for (unsigned i = 0; i < 6; ++i) {
    block.bytes[8 + i] ^= static_cast<std::uint8_t>(period >> (40 - 8 * i));
  }
  return crypto::aes_ctr_keystream(key, block.bytes, out);
}

}  // namespace

crypto::KeyMaterial SessionKeys::material(Suite suite, Protocol protocol) const {
  const SuiteFacts& of = facts(suite);
  return {of.cipher,
          of.hash(),
          cipher_key.first(of.key_length),
          salt.first(of.salt_length),
          auth_key.first(of.auth_key_length()),
          of.tag_length(protocol)};
}

Expected<SessionKeys> derive(Suite suite, Protocol protocol, std::span<const std::uint8_t> key,
                             std::span<const std::uint8_t> salt, std::uint64_t period) {
  const SuiteFacts& of = facts(suite);
  if (key.size() != of.key_length || salt.size() != of.salt_length) {
    return make_error(std::string(of.name) + ": a master key of " + std::to_string(key.size()) + " and a salt of " +
                      std::to_string(salt.size()) + " bytes: must be " + std::to_string(of.key_length) + " and " +
                      std::to_string(of.salt_length));
  }
  const unsigned base = protocol == Protocol::rtcp ? rtcp_labels : 0;
  SessionKeys keys;
  if (!derive_one(key, salt, base + cipher_label, period, keys.cipher_key.first(of.key_length)) ||
      !derive_one(key, salt, base + salt_label, period, keys.salt.first(of.salt_length)) ||
      (of.auth_key_length() != 0 &&
       !derive_one(key, salt, base + auth_label, period, keys.auth_key.first(of.auth_key_length())))) {
    return make_error("libcrypto refuses to derive SRTP keys");
  }
  return keys;
}

}  // namespace sluice::srtp
