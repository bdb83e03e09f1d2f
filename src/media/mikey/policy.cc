#include "media/mikey/policy.h"

namespace sluice::media::mikey {

namespace {

// Parameters that switch protection off, or ask for what is not there. nullptr: taken.
const char* set_parameter(Policy& policy, std::uint8_t type, std::uint8_t value) {
  switch (type) {
    case encryption:
      policy.encryption = value;
      return nullptr;
    case encryption_key:
      policy.key = value;
      return nullptr;
    case authentication:
      policy.authentication = value;
      return nullptr;
    case authentication_key:
      policy.authentication_key = value;
      return nullptr;
    case salt_key:
      policy.salt = value;
      return nullptr;
    case prf:
      return value == 0 ? nullptr : "a pseudo-random function other than AES-CM is not supported";
    case derivation:
      policy.derivation = value;
      return value <= 24 ? nullptr : "a key derivation rate above 2^24 is not supported";
    case srtp_encrypted:
      return value == 1 ? nullptr : "SRTP without encryption is not supported";
    case srtcp_encrypted:
      return value == 1 ? nullptr : "SRTCP without encryption is not supported";
    case fec_order:
      return value == 0 ? nullptr : "FEC behind SRTP is not supported";
    case srtp_authenticated:
      return value == 1 ? nullptr : "SRTP without authentication is not supported";
    case tag_length:
    case aead_tag_length:
      policy.tag = value;
      return nullptr;
    case prefix_length:
      return value == 0 ? nullptr : "an SRTP prefix is not supported";
    default:
      return "the SRTP policy has an unknown parameter";
  }
}

// The tag's length of an HMAC policy: where RFC 3830 has it, or where GStreamer does.
std::uint8_t tag_of(const Policy& policy) {
  if (policy.authentication_key == 4 || policy.authentication_key == 10) {
    return policy.authentication_key;
  }
  return policy.tag.value_or(10);
}

}  // namespace

Expected<Policy> policy_of(Cursor cursor) {
  Policy policy;
  while (cursor.left() > 0) {
    const std::uint8_t type = cursor.byte();
    const auto value = cursor.bytes(cursor.byte());
    if (cursor.cut() || value.size() != 1) {
      return wrong("a parameter of the SRTP policy is not one byte");
    }
    if (const char* const problem = set_parameter(policy, type, value[0])) {
      return wrong(problem);
    }
  }
  return policy;
}

Expected<srtp::Suite> suite_of(const Policy& policy) {
  for (const srtp::SuiteFacts& facts : srtp::suites) {
    const bool gcm = facts.gcm();
    const bool same_cipher = policy.encryption == (gcm ? aes_gcm : aes_cm) && policy.key == facts.key_length &&
                             policy.salt.value_or(facts.salt_length) == facts.salt_length;
    const bool same_authentication = gcm ? policy.authentication == 0 && policy.tag.value_or(16) == 16
                                         : policy.authentication == hmac_sha1 && tag_of(policy) == facts.rtp_tag_length;
    const bool known_key_length = gcm || policy.authentication_key == 20 || tag_of(policy) == policy.authentication_key;
    if (same_cipher && same_authentication && known_key_length) {
      return facts.suite;
    }
  }
  return wrong("the SRTP policy is none of the supported suites");
}

}  // namespace sluice::media::mikey
