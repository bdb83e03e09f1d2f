#include "crypto/algorithms/expand.h"

#include <cstring>

#include "crypto/key_table.h"
#include "crypto/secret.h"

namespace sluice::crypto {
namespace {

void hmac_state(IMB_MGR* manager, std::span<const std::uint8_t> key, Hash hash, std::uint8_t pad, HashState& state) {
  Secret<128> block;
  std::memset(block.bytes, pad, sizeof block.bytes);
  for (std::size_t i = 0; i < key.size(); ++i) {
    block.bytes[i] ^= key[i];
  }
  switch (hash) {
    case Hash::hmac_sha1:
      IMB_SHA1_ONE_BLOCK(manager, block.bytes, state.word32);
      return;
    case Hash::hmac_sha256:
      IMB_SHA256_ONE_BLOCK(manager, block.bytes, state.word32);
      return;
    case Hash::hmac_sha384:
      IMB_SHA384_ONE_BLOCK(manager, block.bytes, state.word64);
      return;
    default:
      IMB_SHA512_ONE_BLOCK(manager, block.bytes, state.word64);
  }
}

// E(K, 0) as the first block of a keystream.
void hash_key(IMB_MGR* manager, Key& key) {
  static constexpr std::uint8_t zeros[aes_block] = {};
  constexpr IMB_KEY_SIZE_BYTES sizes[] = {IMB_KEY_128_BYTES, IMB_KEY_192_BYTES, IMB_KEY_256_BYTES};
  IMB_JOB job = {};
  job.src = zeros;
  job.dst = key.power[0];
  job.enc_keys = key.round_keys;
  job.iv = zeros;
  job.iv_len_in_bytes = aes_block;
  job.msg_len_to_cipher_in_bytes = aes_block;
  IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager, &job, 1, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT, sizes[(key.rounds - 10) / 2]);
}

}  // namespace

void expand_aes(IMB_MGR* manager, std::span<const std::uint8_t> cipher_key, Key& key, bool opens) {
  alignas(16) Secret<sizeof Key::round_keys> other;  // direction's, which come along
  void* const enciphering = opens ? static_cast<void*>(other.bytes) : key.round_keys;
  void* const deciphering = opens ? static_cast<void*>(key.round_keys) : other.bytes;
  switch (cipher_key.size()) {
    case 16:
      IMB_AES_KEYEXP_128(manager, cipher_key.data(), enciphering, deciphering);
      key.rounds = 10;
      return;
    case 24:
      IMB_AES_KEYEXP_192(manager, cipher_key.data(), enciphering, deciphering);
      key.rounds = 12;
      return;
    default:
      IMB_AES_KEYEXP_256(manager, cipher_key.data(), enciphering, deciphering);
      key.rounds = 14;
  }
}

void expand_hmac(IMB_MGR* manager, std::span<const std::uint8_t> auth_key, Key& key) {
  hmac_state(manager, auth_key, key.hash, 0x36, key.hmac.inner);
  hmac_state(manager, auth_key, key.hash, 0x5c, key.hmac.outer);
}

void expand_aes_with_hmac(IMB_MGR* manager, const KeyMaterial& material, Slot& slot) {
  expand_aes(manager, material.cipher_key, *slot.key, material.cipher == Cipher::aes_cbc && material.opens);
  expand_hmac(manager, material.auth_key, *slot.key);
}

void expand_gcm(IMB_MGR* manager, std::span<const std::uint8_t> cipher_key, Slot& slot) {
  expand_aes(manager, cipher_key, *slot.key);
  auto& expanded = *static_cast<gcm_key_data*>(slot.gcm_key);
  switch (cipher_key.size()) {
    case 16:
      IMB_AES128_GCM_PRE(manager, cipher_key.data(), &expanded);
      break;
    case 24:
      IMB_AES192_GCM_PRE(manager, cipher_key.data(), &expanded);
      break;
    default:
      IMB_AES256_GCM_PRE(manager, cipher_key.data(), &expanded);
  }
  hash_key(manager, *slot.key);
  // GHASH of one block, begun with zeros, is its product with H.
  auto& power = slot.key->power;
  for (std::size_t i = 1; i < hash_powers; ++i) {
    IMB_GHASH(manager, &expanded, power[i - 1], aes_block, power[i], aes_block);
  }
}

}  // namespace sluice::crypto
