// HMAC of a packet in clear: ESP with NULL encryption (RFC 2410), and AH (RFC 4302).
#include <array>
#include <string_view>

#include "crypto/algorithms/expand.h"
#include "crypto/algorithms/hmac_texts.h"
#include "crypto/algorithms/paired.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

constexpr std::array answers_sha1 = {
    KnownAnswer{"RFC 2202 3.1, 96 bits", "", "", key_0b, no_nonce, hi_there, "", "", "", "b617318655057264e28bc0b6"},
    KnownAnswer{"RFC 2202 3.2, as text", "", "", "4a656665", no_nonce, "", "", jefe_text, jefe_text,
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
    KnownAnswer{"RFC 2202 3.3, 96 bits, suffix", "", "", key_aa, no_nonce, dd_46, "dddddddd", "", "",
                "125d7342b9ac11cd91a39af4"},
    KnownAnswer{"RFC 2202 3.4, 96 bits", "", "", hmac_key_4, no_nonce, cd_50, "", "", "", "4c9007f4026250c6bc8414f9"},
};

// RFC 4231's and RFC 4868's, of which each hash has a tag; some have a key of each hash's length, too.
struct Sha2Answer {
  std::string_view name;
  std::array<std::string_view, 3> auth_key;
  std::string_view clear, suffix, text;
  std::array<std::string_view, 3> tag;
};
constexpr std::array<std::string_view, 3> each(std::string_view key) {
  return {key, key, key};
}

constexpr std::array sha2_answers = {
    Sha2Answer{"RFC 4231 4.2",
               each(key_0b),
               hi_there,
               "",
               "",
               {"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
                "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59c",
                "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"}},
    Sha2Answer{"RFC 4231 4.3, as text",
               each("4a656665"),
               "",
               "",
               jefe_text,
               {"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e",
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"}},
    Sha2Answer{"RFC 4231 4.4, suffix",
               each(key_aa),
               dd_46,
               "dddddddd",
               "",
               {"773ea91e36800e46854db8ebd09181a7", "88062608d3e6ad8a0aa2ace014c8a86f0aa635d947ac9feb",
                "fa73b0089d56a284efb0f0756c890be9b1b5dbdd8ee81a3655f83e33b2279d39"}},
    Sha2Answer{"RFC 4231 4.5",
               each(hmac_key_4),
               cd_50,
               "",
               "",
               {"82558a389a443c0ea4cc819899f2083a", "3e8a69b7783c25851933ab6290af6ca77a9981480850009c",
                "b0ba465637458c6990e5a8c5f61d4af7e576d97ff94b872de76f8050361ee3db"}},
    Sha2Answer{
        "RFC 4231 4.6",
        each(key_0c),
        truncation_text,
        "",
        "",
        {"a3b6167473100ee06e0c796c2955552b", "3abf34c3503b2a23a46efc619baef897", "415fad6271580a531d4179bc891d87a6"}},
    Sha2Answer{"RFC 4868 AUTH-2",
               {jefe_64.substr(0, 64), jefe_64.substr(0, 96), jefe_64},
               jefe_text,
               "",
               "",
               {"167f928588c5cc2eef8e3093caa0e87c", "2c7353974f1842fd66d53c452ca42122b28c0b594cfb184d",
                "cb370917ae8a7ce28cfd1d8f4705d6141c173b2a9362c15df235dfb251b15454"}},
    Sha2Answer{"RFC 4868 AUTH-4",
               {counting_64.substr(0, 64), counting_48, counting_64},
               cd_50,
               "",
               "",
               {"372efcf9b40b35c2115b1346903d2ef4", "5b540085c6e6358096532b2493609ed1cb298f774f87bb5c",
                "5e6688e5a3daec826ca32eaea224eff5e700628947470e13ad01302561bab108"}},
};

// `hash`: 0 SHA-256, 1 SHA-384, 2 SHA-512.
constexpr auto answers_of(std::size_t hash) {
  std::array<KnownAnswer, sha2_answers.size()> all = {};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Sha2Answer& one = sha2_answers[i];
    all[i] = {.name = one.name,
              .cipher_key = "",
              .salt = "",
              .auth_key = one.auth_key[hash],
              .nonce = no_nonce,
              .clear = one.clear,
              .suffix = one.suffix,
              .text = one.text,
              .sealed = one.text,
              .tag = one.tag[hash]};
  }
  return all;
}
constexpr std::array answers_sha2 = {answers_of(0), answers_of(1), answers_of(2)};

constexpr std::size_t key_lengths[] = {0};

void expand(IMB_MGR* manager, const KeyMaterial& material, Slot& slot) {
  expand_hmac(manager, material.auth_key, *slot.key);
}

}  // namespace

extern const PerHash<Algorithm> null_hmac;
constinit const PerHash<Algorithm> null_hmac =
    paired(Cipher::null, {"null_hmac_sha1", "null_hmac_sha256", "null_hmac_sha384", "null_hmac_sha512"}, key_lengths, 0,
           {answers_sha1, answers_sha2[0], answers_sha2[1], answers_sha2[2]}, expand);

}  // namespace sluice::crypto
