// HMAC-SHA1 of a packet in clear (RFC 2410 with RFC 2404, whose tag has 12 bytes).
#include <array>

#include "crypto/algorithm.h"
#include "crypto/algorithms/expand.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

constexpr std::string_view no_nonce = "00000000000000000000";
constexpr std::string_view cd_50 =
    "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";
constexpr std::string_view dd_50 =
    "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
constexpr std::string_view dd_46 =
    "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
constexpr std::string_view hi_there = "4869205468657265";
constexpr std::string_view jefe_text = "7768617420646f2079612077616e7420666f72206e6f7468696e673f";
constexpr std::string_view hmac_key_4 = "0102030405060708090a0b0c0d0e0f10111213141516171819";
constexpr std::string_view key_0b = "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b";
constexpr std::string_view key_aa = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

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
const Algorithm null_hmac_sha1 = {.cipher = Cipher::null_hmac_sha1,
                                  .name = "null_hmac_sha1",
                                  .key_lengths = key_lengths,
                                  .salt_length = 0,
                                  .auth_key = {1, 64},
                                  .tag = {1, sha1_length},
                                  .needs_powers = false,
                                  .answers = answers,
                                  .expand = expand};

}  // namespace sluice::crypto
