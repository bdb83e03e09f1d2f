// MIKEY (RFC 3830) as RTSP peers use it to carry SRTP keys in SDP (a=key-mgmt:mikey, RFC 4567) and in SETUP's KeyMgmt
// header: an I_MESSAGE of the pre-shared key method whose KEMAC has NULL encryption and NULL authentication. So the key
// stands in it in clear, as in a=crypto: whoever may see the one may see the other.
//
// Written: HDR (SRTP-ID map: an entry for each SSRC), T (NTP-UTC), RAND (16 bytes), SP (SRTP policy 0), KEMAC with one
// TEK of key and salt together, which is what GStreamer and live555 write and read. Read: the same with any order of
// payloads that RFC 3830 allows, TEK or TEK+SALT, MKI as an SPI. Refused by name: other exchange types, an encrypted or
// authenticated KEMAC, several TEKs, TGKs, policies that no suite of srtp/suite.h has, and anything that its own
// lengths do not cover.
//
// GStreamer 1.22 writes the tag's length where RFC 3830 has the authentication key's (parameter 3: 10 or 4) and reads
// it there; it knows nothing of parameter 11. This writes 20 and the tag's length in 11, but for 32-bit tags, which
// GStreamer would not understand otherwise: there parameter 3 is 4. Read are both. Thread-safety: none needed (values).
// Cost: control path; linear in the message.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "media/secret.h"
#include "media/srtp/suite.h"

namespace sluice::media::mikey {

inline constexpr std::size_t max_streams = 32;  // of a CS ID map

struct Stream {
  std::uint32_t ssrc = 0;
  std::uint32_t roc = 0;
  bool operator==(const Stream&) const = default;
};

struct Message {
  std::uint32_t csb_id = 0;
  std::vector<Stream> streams;  // may be empty: any SSRC
  std::uint64_t ntp_time = 0;
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  unsigned derivation_rate = 0;  // as CryptoAttribute's
  MasterKey key;                 // key and salt
  SecretBytes mki;               // empty: none
};

// A message with `random` (16 bytes) as its RAND. The key must be as long as the suite's.
SecretBytes write(const Message& message, std::span<const std::uint8_t, 16> random);
Expected<Message> parse(std::span<const std::uint8_t> bytes);

// The value of a=key-mgmt ("mikey BASE64").
SecretText key_mgmt_attribute(std::span<const std::uint8_t> message);

// The MIKEY of a KeyMgmt header (RFC 4567 section 4.3): of "prot=mikey;uri="rtsp://...";data="BASE64"", the entry of
// `mikey`; nothing when only other protocols are there.
struct KeyMgmt {
  std::string_view uri;  // within the header
  SecretBytes data;
};
Expected<std::optional<KeyMgmt>> parse_key_mgmt_header(std::string_view value);

// Seconds since 1900 and their fraction, of seconds since 1970.
std::uint64_t ntp_of(std::uint64_t unix_seconds);

}  // namespace sluice::media::mikey
