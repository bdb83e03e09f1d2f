// The SRTP crypto suites by the names that SDP gives them (RFC 4568, 6188, 7714).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::media::sdp {

enum class Suite : std::uint8_t {
  aes_cm_128_hmac_sha1_80,
  aes_cm_128_hmac_sha1_32,
  aes_256_cm_hmac_sha1_80,
  aes_256_cm_hmac_sha1_32,
  aead_aes_128_gcm,
  aead_aes_256_gcm,
};
inline constexpr unsigned suite_count = 6;

// Lengths in bytes. `tag_rtp`: of RTP; RTCP's is 10 for every HMAC suite and 16 for GCM.
struct SuiteFacts {
  std::string_view name;
  std::uint8_t key;
  std::uint8_t salt;
  std::uint8_t tag_rtp;
  std::uint8_t tag_rtcp;
  bool gcm;

  std::size_t key_and_salt() const { return std::size_t{key} + salt; }
};

const SuiteFacts& facts(Suite suite);
// By its name in SDP, in any case (RFC 4568 section 9.1 compares names as ABNF does).
std::optional<Suite> suite_named(std::string_view name);

}  // namespace sluice::media::sdp
