// The SRTP policy of a MIKEY message (RFC 3830 section 6.10.1), read.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "media/mikey/payload.h"
#include "media/srtp/suite.h"

namespace sluice::media::mikey {

inline tl::unexpected<Error> wrong(std::string_view what) {
  return make_error("MIKEY: " + std::string(what));
}

// Reads forwards; beyond the end it gives zeros and remembers.
class Cursor {
 public:
  explicit Cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint64_t take(unsigned size) {
    std::uint64_t value = 0;
    for (const std::uint8_t byte : bytes(size)) {
      value = value << 8 | byte;
    }
    return value;
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)); }
  std::span<const std::uint8_t> bytes(std::size_t size) {
    if (size > bytes_.size()) {
      short_ = true;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  bool cut() const { return short_; }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool short_ = false;
};

// What an SRTP policy said, with RFC 3830's defaults; policy.cc knows the parameters.
struct Policy {
  std::uint8_t encryption = aes_cm;
  std::uint8_t key = 16;
  std::uint8_t authentication = hmac_sha1;
  std::uint8_t authentication_key = 20;
  std::optional<std::uint8_t> salt;
  std::uint8_t derivation = 0;
  std::optional<std::uint8_t> tag;
};

Expected<Policy> policy_of(Cursor cursor);
// The suite that it describes; an error when there is none.
Expected<srtp::Suite> suite_of(const Policy& policy);

}  // namespace sluice::media::mikey
