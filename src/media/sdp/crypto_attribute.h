// The value of a=crypto (SDP security descriptions, RFC 4568; suites of RFC 6188 and 7714):
//
//     1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^20|1:4;inline:... KDR=1 -LATER=2
//
// What is read and can be honoured: several keys (then each with an MKI), lifetimes as 2^n or a number, MKIs, KDR and
// WSH, unknown parameters that begin with '-' (ignored, section 6.3.7). Refused by name: UNENCRYPTED_SRTP,
// UNENCRYPTED_SRTCP, UNAUTHENTICATED_SRTP, FEC_ORDER, FEC_KEY, unknown suites, key methods and parameters. Errors never
// show key material. Thread-safety: none needed (values). Cost: control path.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "media/secret.h"
#include "media/srtp/suite.h"

namespace sluice::media::sdp {

inline constexpr std::size_t max_crypto_keys = 16;
inline constexpr std::uint32_t most_window = 16384;  // packets, as media/srtp/stream_pool.h

struct CryptoKey {
  MasterKey key;                          // as long as the suite's key and salt together
  std::optional<std::uint64_t> lifetime;  // packets; absent: the suite's limit
  std::optional<std::uint64_t> mki;       // RFC 4568 writes it as a number
  std::uint8_t mki_length = 0;            // bytes, 1 to 128; 0 without MKI
};

struct CryptoAttribute {
  std::uint32_t tag = 1;  // at most nine digits
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  std::vector<CryptoKey> keys;  // one at least
  unsigned derivation_rate =
      0;  // log2 of the key derivation rate in packets (KDR=n, 0 to 24); 0: keys are derived once
  std::optional<std::uint32_t> window;  // WSH, 64 to most_window
};

// A line as somebody has copied it from a description or a log, without what is around its value: blanks, line ends,
// "a=crypto:" or "crypto:".
std::string_view crypto_value(std::string_view line);

// `value`: what stands behind "a=crypto:".
Expected<CryptoAttribute> parse_crypto(std::string_view value);
// The same form; parse_crypto() of it gives the attribute back.
SecretText crypto_text(const CryptoAttribute& attribute);

}  // namespace sluice::media::sdp
