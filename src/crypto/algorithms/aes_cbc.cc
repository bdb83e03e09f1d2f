// AES in CBC mode with HMAC (RFC 3602; 2404, 4868).
#include "crypto/algorithms/paired.h"

namespace sluice::crypto {
namespace {

constexpr std::string_view text_38a =
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";

constexpr std::array cipher_answers = {
    CipherAnswer{"RFC 3602 case 1",
                 "06a9214036b8a15b512e03d534120006",
                 "",
                 "3dafba429d9eb430b422da802c9fac41",
                 "",
                 "53696e676c6520626c6f636b206d7367",
                 "e353779c1079aeb82708942dbe77181a",
                 "87a25536112dc655ffbaa1f79a13a741",
                 {"87cc2ab3fd8feee35ce100e6", "f7ca638c51c65192b5070f75b3a2e50f",
                  "03235f5e01a7e7e702f7e077d4bf82b72ee58a604e6ed6f5",
                  "75f95c1cada957db16beae8898fb7cf0ceb56043e7f4e3fd1f0c7facde3bf5e6"}},
    CipherAnswer{"RFC 3602 case 2",
                 "c286696d887c9aa0611bbb3e2025a45a",
                 "",
                 "562e17996d093d28ddb3ba695a2e6f58",
                 "",
                 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
                 "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
                 "bb2d2e7d7e5c08e1d5ea56a14aa58002",
                 {"b435eed5dfea6fffd962c4e2", "7ac5e425f48d38bd0e270eccd225bb69",
                  "2fde400d80c4a3ea1506fd26adededc3631bb1f1760188ea",
                  "0cc54cbd546b6b92b47a5ceeae55ef217dbd0dbeafe1a26c3ed1b9219e0036f8"}},
    CipherAnswer{"RFC 3602 case 5",
                 "90d382b410eeba7ad938c46cec1a82bf",
                 "",
                 "0000432100000001e96e8c08ab465763fd098d45dd3ff893",
                 "00000001",
                 "08000ebda70a00008e9c083db95b070008090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292"
                 "a2b2c2d2e2f30313233343536370102030405060708090a0b0c0d0e0e01",
                 "f663c25d325c18c6a9453e194e120849a4870b66cc6b9965330013b4898dc856a4699e523a55db080b59ec3a8e4b7e52775b0"
                 "7d1db34ed9c538ab50c551b874aa269add047ad2d5913ac19b7cfbad4a6",
                 "cf99abb76d2b96722adc0717f1a501bf",
                 {"9c943b0dbee9d2066d2d2812", "22ab9cbe2253dcf0b1801222c19a5175",
                  "10220acb0295ed8be583717ac628689d75af42b7d0f16ab7",
                  "a8060ff4694ec87f5f835a8bd893943b5b9ae765b97ea079fc4c08eee8385bbd"}},
    CipherAnswer{"SP 800-38A F.2.3",
                 "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
                 "",
                 "000102030405060708090a0b0c0d0e0f",
                 "",
                 text_38a,
                 "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0e"
                 "27988598881d920a9e64f5615cd",
                 "2996ff21b81641c7bef3124e9efe4780",
                 {"6d4f7f990ed8bdfe0ea2eafe", "d144604e3f9d604e5bba689869bfdf93",
                  "72b2bda7406446e5574832d43d06e85a2a6905456ec2c7ea",
                  "2684b120062595b38baee83a346d437c1d11451a37566cc27183571c94773472"}},
    CipherAnswer{"SP 800-38A F.2.5",
                 "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                 "",
                 "000102030405060708090a0b0c0d0e0f",
                 "",
                 text_38a,
                 "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb0"
                 "5e2c39be9fcda6c19078c6a9d1b",
                 "393e4e6cdf9b1fc836120fa2a3d8f140",
                 {"c01e0a120ad064c69c0ff3d6", "d7d5371324418c7834308d934f657fda",
                  "2a129d645e0abc6fc477b63f9a46b0bd14b9c1fe6c569714",
                  "94b841232d4f1958867e00ac4143795f094f74abb021f07c4240bde5eaa1e372"}}};
constexpr auto answers = with_hashes(cipher_answers);

}  // namespace

extern const PerHash<Algorithm> aes_cbc_hmac;
constinit const PerHash<Algorithm> aes_cbc_hmac =
    paired(Cipher::aes_cbc, {"aes_cbc_hmac_sha1", "aes_cbc_hmac_sha256", "aes_cbc_hmac_sha384", "aes_cbc_hmac_sha512"},
           aes_key_lengths, 0, spans_of(answers), expand_aes_with_hmac);

}  // namespace sluice::crypto
