#include "media/sdp/suite.h"

#include <array>

#include "media/text.h"

namespace sluice::media::sdp {

namespace {

constexpr std::array<SuiteFacts, suite_count> table = {{
    {"AES_CM_128_HMAC_SHA1_80", 16, 14, 10, 10, false},
    {"AES_CM_128_HMAC_SHA1_32", 16, 14, 4, 10, false},
    {"AES_256_CM_HMAC_SHA1_80", 32, 14, 10, 10, false},
    {"AES_256_CM_HMAC_SHA1_32", 32, 14, 4, 10, false},
    {"AEAD_AES_128_GCM", 16, 12, 16, 16, true},
    {"AEAD_AES_256_GCM", 32, 12, 16, 16, true},
}};

}  // namespace

const SuiteFacts& facts(Suite suite) {
  return table[static_cast<std::size_t>(suite)];
}

std::optional<Suite> suite_named(std::string_view name) {
  for (unsigned i = 0; i < suite_count; ++i) {
    if (same_name(table[i].name, name)) {
      return static_cast<Suite>(i);
    }
  }
  return std::nullopt;
}

}  // namespace sluice::media::sdp
