#include "crypto/algorithms/expand.h"

#include <cstring>

#include "crypto/secret.h"

namespace sluice::crypto {
namespace {

void hmac_state(IMB_MGR* manager, std::span<const std::uint8_t> key, std::uint8_t pad, HashState& state) {
  Secret<64> block;
  std::memset(block.bytes, pad, sizeof block.bytes);
  for (std::size_t i = 0; i < key.size(); ++i) {
    block.bytes[i] ^= key[i];
  }
  IMB_SHA1_ONE_BLOCK(manager, block.bytes, state.word32);
}

}  // namespace

void expand_aes(IMB_MGR* manager, std::span<const std::uint8_t> cipher_key, Key& key) {
  alignas(16) Secret<sizeof Key::round_keys> deciphering;  // comes along, and is not needed
  switch (cipher_key.size()) {
    case 16:
      IMB_AES_KEYEXP_128(manager, cipher_key.data(), key.round_keys, deciphering.bytes);
      key.rounds = 10;
      return;
    case 24:
      IMB_AES_KEYEXP_192(manager, cipher_key.data(), key.round_keys, deciphering.bytes);
      key.rounds = 12;
      return;
    default:
      IMB_AES_KEYEXP_256(manager, cipher_key.data(), key.round_keys, deciphering.bytes);
      key.rounds = 14;
  }
}

void expand_hmac_sha1(IMB_MGR* manager, std::span<const std::uint8_t> auth_key, Key& key) {
  hmac_state(manager, auth_key, 0x36, key.hmac.inner);
  hmac_state(manager, auth_key, 0x5c, key.hmac.outer);
}

}  // namespace sluice::crypto
