// The protection profiles by their names in SDP (RFC 4568 section 6.2, RFC 6188, RFC 7714 section 14.2).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "crypto/key.h"

namespace sluice::srtp {

enum class Suite : std::uint8_t {
  aes_cm_128_hmac_sha1_80,
  aes_cm_128_hmac_sha1_32,
  aes_256_cm_hmac_sha1_80,
  aes_256_cm_hmac_sha1_32,
  aead_aes_128_gcm,
  aead_aes_256_gcm,
};

enum class Protocol : std::uint8_t { rtp, rtcp };

// Lengths in bytes.
struct SuiteFacts {
  Suite suite;
  std::string_view name;  // "AES_CM_128_HMAC_SHA1_80"
  crypto::Cipher cipher;
  std::uint8_t key_length;   // of the master key and the session's cipher key
  std::uint8_t salt_length;  // of the master salt and the session salt
  std::uint8_t rtp_tag_length;
  std::uint8_t rtcp_tag_length;  // _32 has 80 bits here (RFC 3711 section 5.2, RFC 4568 6.2.2)

  constexpr std::uint8_t tag_length(Protocol protocol) const {
    return protocol == Protocol::rtp ? rtp_tag_length : rtcp_tag_length;
  }
  constexpr bool gcm() const { return cipher == crypto::Cipher::aes_gcm; }
  constexpr crypto::Hash hash() const { return gcm() ? crypto::Hash::none : crypto::Hash::hmac_sha1; }
  constexpr std::uint8_t auth_key_length() const { return gcm() ? 0 : crypto::sha1_length; }
  // One behind the other, as SDES and MIKEY carry them.
  constexpr std::size_t key_and_salt_length() const { return std::size_t{key_length} + salt_length; }
};

inline constexpr std::array<SuiteFacts, 6> suites = {{
    {Suite::aes_cm_128_hmac_sha1_80, "AES_CM_128_HMAC_SHA1_80", crypto::Cipher::aes_ctr, 16, 14, 10, 10},
    {Suite::aes_cm_128_hmac_sha1_32, "AES_CM_128_HMAC_SHA1_32", crypto::Cipher::aes_ctr, 16, 14, 4, 10},
    {Suite::aes_256_cm_hmac_sha1_80, "AES_256_CM_HMAC_SHA1_80", crypto::Cipher::aes_ctr, 32, 14, 10, 10},
    {Suite::aes_256_cm_hmac_sha1_32, "AES_256_CM_HMAC_SHA1_32", crypto::Cipher::aes_ctr, 32, 14, 4, 10},
    {Suite::aead_aes_128_gcm, "AEAD_AES_128_GCM", crypto::Cipher::aes_gcm, 16, 12, 16, 16},
    {Suite::aead_aes_256_gcm, "AEAD_AES_256_GCM", crypto::Cipher::aes_gcm, 32, 12, 16, 16},
}};
inline constexpr std::size_t max_key_length = 32;
inline constexpr std::size_t max_salt_length = 14;

constexpr const SuiteFacts& facts(Suite suite) {
  return suites[static_cast<std::size_t>(suite)];
}

// In any case: RFC 4568 section 9.1 compares names as ABNF does.
std::optional<Suite> suite_named(std::string_view name);

}  // namespace sluice::srtp
