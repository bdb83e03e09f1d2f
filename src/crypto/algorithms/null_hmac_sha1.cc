// HMAC-SHA1 of a packet in clear (RFC 2410 with RFC 2404, whose tag has 12 bytes).
#include <array>

#include "crypto/algorithm.h"
#include "crypto/algorithms/expand.h"
#include "crypto/algorithms/rfc2202.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

constexpr std::array answers = {
    KnownAnswer{"RFC 2202 3.1, 96 bits", "", "", key_0b, no_nonce, hi_there, "", "", "", "b617318655057264e28bc0b6"},
    KnownAnswer{"RFC 2202 3.2, as text", "", "", "4a656665", no_nonce, "", "", jefe_text, jefe_text,
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
    KnownAnswer{"RFC 2202 3.3, 96 bits, suffix", "", "", key_aa, no_nonce, dd_46, "dddddddd", "", "",
                "125d7342b9ac11cd91a39af4"},
    KnownAnswer{"RFC 2202 3.4, 96 bits", "", "", hmac_key_4, no_nonce, cd_50, "", "", "", "4c9007f4026250c6bc8414f9"},
};

constexpr std::size_t key_lengths[] = {0};

void expand(IMB_MGR* manager, const KeyMaterial& material, Slot& slot) {
  expand_hmac_sha1(manager, material.auth_key, *slot.key);
}

}  // namespace

extern const Algorithm null_hmac_sha1;
const Algorithm null_hmac_sha1 = {.cipher = Cipher::null,
                                  .hash = Hash::hmac_sha1,
                                  .name = "null_hmac_sha1",
                                  .key_lengths = key_lengths,
                                  .salt_length = 0,
                                  .auth_key = {1, 64},
                                  .tag = {1, sha1_length},
                                  .needs_gcm_key = false,
                                  .answers = answers,
                                  .expand = expand};

}  // namespace sluice::crypto
