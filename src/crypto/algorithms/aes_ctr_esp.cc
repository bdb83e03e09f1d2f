// AES in counter mode with HMAC, as of ESP (RFC 3686; 2404, 4868).
#include "crypto/algorithms/paired.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

constexpr std::array cipher_answers = {
    CipherAnswer{"RFC 3686 vector 1",
                 "ae6852f8121067cc4bf7a5765577f39e",
                 "00000030",
                 "00004321000000010000000000000000",
                 "",
                 "53696e676c6520626c6f636b206d7367",
                 "e4095d4fb7a7b3792d6175a3261311b8",
                 "",
                 {"32ff14e48ce13360362507a2", "ba0ac02024aff044564131e515669f82",
                  "501947a937e2e4a753133ec29459c0a1408bfb7700483083",
                  "d486d75ce83e63bb30c277a153f8bfdeaee522deb5cc74106ccfd06a58a3e6ba"}},
    CipherAnswer{"RFC 3686 vector 2",
                 "7e24067817fae0d743d6ce1f32539163",
                 "006cb6db",
                 "0000432100000001c0543b59da48d90b",
                 "",
                 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
                 "5104a106168a72d9790d41ee8edad388eb2e1efc46da57c8fce630df9141be28",
                 "",
                 {"56214aec7bbc98bb3753d546", "b31c59fb41d8aa138922f9af53818322",
                  "12e958e12001fb22da7a2fc7edc4a980bbf618e65a2f33c4",
                  "d4f309d3f6c61b439dcb48cd5f2e02219f4d2d07d08a17c9457e1c7618874bb4"}},
    CipherAnswer{"RFC 3686 vector 3",
                 "7691be035e5020a8ac6e618529f9a0dc",
                 "00e0017b",
                 "000043210000000127777f3f4a1786f0",
                 "00000001",
                 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
                 "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
                 "",
                 {"42b446598ebbd0199657c8d6", "328e1d1615dc08a5227f53d4d051ddad",
                  "972c66e69233cf09a53ef0ec48889f03e923d2b11eef6a79",
                  "41bc6ccc8396afdea659af3a5a5324f8527d51242b8ed3403a5e1729ebd60041"}},
    CipherAnswer{"RFC 3686 vector 4",
                 "16af5b145fc9f579c175f93e3bfb0eed863d06ccfdb78515",
                 "00000048",
                 "000043210000000136733c147d6d93cb",
                 "",
                 "53696e676c6520626c6f636b206d7367",
                 "4b55384fe259c9c84e7935a003cbe928",
                 "",
                 {"84bba16e8e4c1a9729b58ec3", "ea5173d5dfa380057b293c08ab533f1f",
                  "843b3b35a2690cacd2b0b75f577661ac1cb4053d6b51ec21",
                  "56234d8549041c5a2e27fb915295775dad4f1425e927017974d01672accaa3be"}},
    CipherAnswer{"RFC 3686 vector 6",
                 "02bf391ee8ecb159b959617b0965279bf59b60a786d3e0fe",
                 "0007bdfd",
                 "00004321000000015cbd60278dcc0912",
                 "00000001",
                 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
                 "96893fc55e5c722f540b7dd1ddf7e758d288bc95c69165884536c811662f2188abee0935",
                 "",
                 {"e714efbcb3c9387337058729", "8cc41d2d861c014f745eeec0114f0b22",
                  "7d3c2f1adeb930da271e7e9f2509ab770672d3ba471722b1",
                  "7c940f8fa0932e392afbf704c61909f6242d6955429f2cd0c1ddcec6ba54ee83"}},
    CipherAnswer{"RFC 3686 vector 7",
                 "776beff2851db06f4c8a0542c8696f6c6a81af1eec96b4d37fc1d689e6c1c104",
                 "00000060",
                 "0000432100000001db5672c97aa8f0b2",
                 "",
                 "53696e676c6520626c6f636b206d7367",
                 "145ad01dbf824ec7560863dc71e3e0c0",
                 "",
                 {"ba2523c2ead6f6a8798f817a", "3a05b2d55ddb00193c4ab9f9eedfa4ee",
                  "cf1fc2b24ae8dee0e6a342c25fcf5c60fb489f11ac94e0ca",
                  "3bcfb7270eea29dabdd81543fd369efe76afee0b7aed4d0278786537c9fac21d"}},
    CipherAnswer{"RFC 3686 vector 9",
                 "ff7a617ce69148e4f1726e2f43581de2aa62d9f805532edff1eed687fb54153d",
                 "001cc5b7",
                 "000043210000000151a51d70a1c11148",
                 "00000001",
                 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
                 "eb6c52821d0bbbf7ce7594462aca4faab407df866569fd07f48cc0b583d6071f1ec0e6b8",
                 "",
                 {"2929adb870e4347a23f22c6a", "b0931d196619857659aba7772a944ab0",
                  "7ee57cdb7adf5871779148dfcee7db5302e6dd3e38a27cff",
                  "f9b30adc13052591acacce9493f343a98b0ac956e761858b268e983861fb8073"}}};
constexpr auto answers_sha1 = with_hash(cipher_answers, Hash::hmac_sha1);
constexpr auto answers_sha256 = with_hash(cipher_answers, Hash::hmac_sha256);
constexpr auto answers_sha384 = with_hash(cipher_answers, Hash::hmac_sha384);
constexpr auto answers_sha512 = with_hash(cipher_answers, Hash::hmac_sha512);

void expand(IMB_MGR* manager, const KeyMaterial& material, Slot& slot) {
  expand_aes(manager, material.cipher_key, *slot.key);
  expand_hmac(manager, material.auth_key, *slot.key);
}

}  // namespace

extern const Algorithm aes_ctr_esp_hmac_sha1;
constinit const Algorithm aes_ctr_esp_hmac_sha1 =
    paired("aes_ctr_esp_hmac_sha1", Cipher::aes_ctr_esp, Hash::hmac_sha1, 4, answers_sha1, expand);
extern const Algorithm aes_ctr_esp_hmac_sha256;
constinit const Algorithm aes_ctr_esp_hmac_sha256 =
    paired("aes_ctr_esp_hmac_sha256", Cipher::aes_ctr_esp, Hash::hmac_sha256, 4, answers_sha256, expand);
extern const Algorithm aes_ctr_esp_hmac_sha384;
constinit const Algorithm aes_ctr_esp_hmac_sha384 =
    paired("aes_ctr_esp_hmac_sha384", Cipher::aes_ctr_esp, Hash::hmac_sha384, 4, answers_sha384, expand);
extern const Algorithm aes_ctr_esp_hmac_sha512;
constinit const Algorithm aes_ctr_esp_hmac_sha512 =
    paired("aes_ctr_esp_hmac_sha512", Cipher::aes_ctr_esp, Hash::hmac_sha512, 4, answers_sha512, expand);

}  // namespace sluice::crypto
