// ChaCha20-Poly1305 as of ESP (RFC 7634).
#include <algorithm>
#include <array>

#include "crypto/algorithm.h"
#include "crypto/algorithms/hmac_texts.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

constexpr std::array answers = {
    KnownAnswer{"RFC 7634 A", "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "a0a1a2a3", "",
                no_nonce, "01020304000000051011121314151617", "",
                "45000054a6f200004001e778c6336405c000020508005b7a3a080000553bec100007362708090a0b0c0d0e0f10111213141516"
                "1718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363701020204",
                "24039428b97f417e3c13753a4f05087b67c352e6a7fab1b982d466ef407ae5c614ee8099d52844eb61aa95dfab4c02f72aa71e"
                "7c4c4f64c9befe2facc638e8f3cbec163fac469b502773f6fb94e664da9165b82829f641e0",
                "76aaa8266b7fb0f7b11b369907e1ad43"},
    KnownAnswer{"RFC 8439 2.8.2", "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "07000000", "",
                no_nonce, "50515253c0c1c2c3c4c5c6c74041424344454647", "",
                "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f756c"
                "64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20"
                "776f756c642062652069742e",
                "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de"
                "0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b"
                "7a9de576d26586cec64b6116",
                "1ae10b594f09e26a7e902ecbd0600691"},
    KnownAnswer{"RFC 8439 2.8.2, ESN", "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "07000000",
                "", no_nonce, "50515253c4c5c6c74041424344454647", "c0c1c2c3",
                "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f756c"
                "64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20"
                "776f756c642062652069742e",
                "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de"
                "0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b"
                "7a9de576d26586cec64b6116",
                "1ae10b594f09e26a7e902ecbd0600691"}};

void expand(IMB_MGR*, const KeyMaterial& material, Slot& slot) {
  std::ranges::copy(material.cipher_key, slot.key->round_keys[0]);
}

constexpr std::size_t key_lengths[] = {32};

}  // namespace

extern const Algorithm chacha20_poly1305_esp;
constinit const Algorithm chacha20_poly1305_esp = {.cipher = Cipher::chacha20_poly1305_esp,
                                                   .hash = Hash::none,
                                                   .name = "chacha20_poly1305_esp",
                                                   .key_lengths = key_lengths,
                                                   .salt_length = 4,
                                                   .auth_key = {0, 0},
                                                   .tag = {16, 16},
                                                   .needs_gcm_key = false,
                                                   .answers = answers,
                                                   .expand = expand};

}  // namespace sluice::crypto
