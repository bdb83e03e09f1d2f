// AES in counter mode, then HMAC-SHA1 over the ciphertext (RFC 3711, 6188).
#include <array>

#include "crypto/algorithm.h"
#include "crypto/algorithms/expand.h"
#include "crypto/algorithms/hmac_texts.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

constexpr std::string_view zeros_16 = "00000000000000000000000000000000";
constexpr std::string_view zeros_32 = "0000000000000000000000000000000000000000000000000000000000000000";
constexpr std::string_view zeros_48 =
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";
constexpr std::string_view salt_14 = "0000000000000000000000000000";
constexpr std::string_view hmac_tag_4 = "4c9007f4026250c6bc8414f9bf50c86c2d7235da";

// Counter mode's blocks are RFC 3711's and RFC 6188's, whose counter begins at 0 as a job's does; the tags over them
// were computed with Python's hmac under RFC 2202's key 4.
constexpr std::array answers = {
    KnownAnswer{"RFC 3711 B.2", "2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfd", hmac_key_4,
                no_nonce, "", "", zeros_48,
                "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab41e95b3bb0a2e8dd477901e4fca894c0",
                "00e8ee12f0c45dec14426e57beb0050634d68e2d"},
    KnownAnswer{"RFC 3711 B.2, nonce for salt", "2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f300000000000000000000",
                hmac_key_4, "f4f5f6f7f8f9fafbfcfd", "", "", zeros_48,
                "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab41e95b3bb0a2e8dd477901e4fca894c0",
                "00e8ee12f0c45dec14426e57beb0050634d68e2d"},
    KnownAnswer{"RFC 6188 7.1", "57f82fe3613fd170a85ec93c40b1f0922ec4cb0dc025b58272147cc438944a98",
                "f0f1f2f3f4f5f6f7f8f9fafbfcfd", hmac_key_4, no_nonce, "", "", zeros_48,
                "92bdd28a93c3f52511c677d08b5515a49da71b2378a854f67050756ded165bac63c4868b7096d88421b563b8c94c9a31",
                "396105eecd14f91b8d052bd6ffeb1b6cee96e837"},
    KnownAnswer{"RFC 6188 7.2", "eab234764e517b2d3d160d587d8c86219740f65f99b6bcf7", "f0f1f2f3f4f5f6f7f8f9fafbfcfd",
                hmac_key_4, no_nonce, "", "", zeros_48,
                "35096cba4610028dc1b57503804ce37c5de986291dcce161d5165ec4568f5c9a474a40c77894bc17180202272a4c264d",
                "221d5af8be0ad0a4fed8e12161e7f35403c7d224"},
    KnownAnswer{"RFC 2202 3.1", zeros_16, salt_14, key_0b, no_nonce, hi_there, "", "", "",
                "b617318655057264e28bc0b6fb378c8ef146be00"},
    KnownAnswer{"RFC 2202 3.2", zeros_32, salt_14, "4a656665", no_nonce, jefe_text, "", "", "",
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
    KnownAnswer{"RFC 2202 3.3, 80 bits", zeros_16, salt_14, key_aa, no_nonce, dd_50, "", "", "",
                "125d7342b9ac11cd91a3"},
    KnownAnswer{"RFC 2202 3.3, 32 bits, suffix", zeros_16, salt_14, key_aa, no_nonce, dd_46, "dddddddd", "", "",
                "125d7342"},
    KnownAnswer{"RFC 2202 3.4", zeros_32, salt_14, hmac_key_4, no_nonce, cd_50, "", "", "", hmac_tag_4},
};

}  // namespace

extern const Algorithm aes_ctr_hmac_sha1;
constinit const Algorithm aes_ctr_hmac_sha1 = {.cipher = Cipher::aes_ctr,
                                               .hash = Hash::hmac_sha1,
                                               .name = "aes_ctr_hmac_sha1",
                                               .key_lengths = aes_key_lengths,
                                               .salt_length = 14,
                                               .auth_key = {1, 64},
                                               .tag = {1, sha1_length},
                                               .needs_gcm_key = false,
                                               .answers = answers,
                                               .expand = expand_aes_with_hmac};

}  // namespace sluice::crypto
