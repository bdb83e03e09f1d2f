// AES-GCM (SP 800-38D, RFC 7714).
#include <array>

#include "crypto/algorithm.h"
#include "crypto/algorithms/expand.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

constexpr std::string_view zeros_16 = "00000000000000000000000000000000";
constexpr std::string_view zeros_32 = "0000000000000000000000000000000000000000000000000000000000000000";
constexpr std::string_view salt_12 = "000000000000000000000000";
constexpr std::string_view no_nonce = "00000000000000000000";
constexpr std::string_view gcm_key_4 = "feffe9928665731c6d6a8f9467308308";
constexpr std::string_view gcm_key_16 = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
constexpr std::string_view gcm_iv = "cafebabefacedbaddecaf888";
constexpr std::string_view gcm_text =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba"
    "637b39";
constexpr std::string_view gcm_aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
constexpr std::string_view gcm_aad_16 = "feedfacedeadbeeffeedfacedeadbeef";
constexpr std::string_view gcm_sealed_4 =
    "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d"
    "58e091";
constexpr std::string_view gcm_tag_4 = "5bc94fbc3221a5db94fae95ae7121a47";
constexpr std::string_view gcm_sealed_16 =
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abc"
    "c9f662";
constexpr std::string_view gcm_tag_16 = "76fc6ece0f4e1768cddf8853bb2d551b";

constexpr std::array answers = {
    KnownAnswer{"GCM test case 1", zeros_16, salt_12, "", no_nonce, "", "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
    KnownAnswer{"GCM test case 2", zeros_16, salt_12, "", no_nonce, "", "", zeros_16,
                "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"},
    KnownAnswer{"GCM test case 4", gcm_key_4, gcm_iv, "", no_nonce, gcm_aad, "", gcm_text, gcm_sealed_4, gcm_tag_4},
    KnownAnswer{"GCM test case 4, nonce and suffix", gcm_key_4, "cafe00000000000000000000", "", "babefacedbaddecaf888",
                gcm_aad_16, "abaddad2", gcm_text, gcm_sealed_4, gcm_tag_4},
    KnownAnswer{"GCM test case 13", zeros_32, salt_12, "", no_nonce, "", "", "", "",
                "530f8afbc74536b9a963b4f1c4cb738b"},
    KnownAnswer{"GCM test case 14", zeros_32, salt_12, "", no_nonce, "", "", zeros_16,
                "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
    KnownAnswer{"GCM test case 16", gcm_key_16, gcm_iv, "", no_nonce, gcm_aad, "", gcm_text, gcm_sealed_16, gcm_tag_16},
    KnownAnswer{"GCM test case 16, nonce and suffix", gcm_key_16, "cafe00000000000000000000", "",
                "babefacedbaddecaf888", gcm_aad_16, "abaddad2", gcm_text, gcm_sealed_16, gcm_tag_16},
};

constexpr std::size_t key_lengths[] = {16, 32};

void expand(IMB_MGR* manager, const KeyMaterial& material, Slot& slot) {
  expand_gcm(manager, material.cipher_key, slot);
}

}  // namespace

extern const Algorithm aes_gcm;
constinit const Algorithm aes_gcm = {.cipher = Cipher::aes_gcm,
                                     .hash = Hash::none,
                                     .name = "aes_gcm",
                                     .key_lengths = key_lengths,
                                     .salt_length = 12,
                                     .auth_key = {0, 0},
                                     .tag = {aes_block, aes_block},
                                     .needs_gcm_key = true,
                                     .answers = answers,
                                     .expand = expand};

}  // namespace sluice::crypto
