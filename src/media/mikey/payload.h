// The numbers of MIKEY's payloads and of an SRTP policy.
#pragma once

#include <cstdint>

namespace sluice::media::mikey {

// Payload types (RFC 3830 section 6.1).
enum Payload : std::uint8_t {
  last = 0,
  kemac = 1,
  timestamp = 5,
  certificate = 7,
  identity = 6,
  security_policy = 10,
  rand_bytes = 11,
  key_data = 20,
  general_extension = 21,
};

// Parameters of an SRTP policy (section 6.10.1; 20: RFC 7714 section 14.2).
enum Parameter : std::uint8_t {
  encryption = 0,
  encryption_key = 1,
  authentication = 2,
  authentication_key = 3,
  salt_key = 4,
  prf = 5,
  derivation = 6,
  srtp_encrypted = 7,
  srtcp_encrypted = 8,
  fec_order = 9,
  srtp_authenticated = 10,
  tag_length = 11,
  prefix_length = 12,
  aead_tag_length = 20,
};

constexpr std::uint8_t aes_cm = 1;
constexpr std::uint8_t aes_gcm = 6;
constexpr std::uint8_t hmac_sha1 = 1;
constexpr std::uint8_t tek = 2;
constexpr std::uint8_t tek_and_salt = 3;

}  // namespace sluice::media::mikey
