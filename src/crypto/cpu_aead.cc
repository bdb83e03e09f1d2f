#include "crypto/cpu_aead.h"

#include <cstring>

#include "crypto/cpu_bursts.h"
#include "crypto/secret.h"

namespace sluice::crypto {
namespace {

constexpr std::size_t suffix_length = sizeof Job::suffix, iv_length = 8;

bool opens(const Job& job) {
  return (job.flags & job_opens) != 0;
}
bool has_suffix(const Job& job) {
  return (job.flags & job_has_suffix) != 0;
}

}  // namespace

CpuAead::CpuAead(IMB_MGR& manager)
    : manager_(manager),
      gcm_{{manager.gcm128_enc, manager.gcm128_dec, manager.gcm128_init, manager.gcm128_enc_update,
            manager.gcm128_dec_update, manager.gcm128_enc_finalize, manager.gcm128_dec_finalize},
           {manager.gcm192_enc, manager.gcm192_dec, manager.gcm192_init, manager.gcm192_enc_update,
            manager.gcm192_dec_update, manager.gcm192_enc_finalize, manager.gcm192_dec_finalize},
           {manager.gcm256_enc, manager.gcm256_dec, manager.gcm256_init, manager.gcm256_enc_update,
            manager.gcm256_dec_update, manager.gcm256_enc_finalize, manager.gcm256_dec_finalize}} {}

CpuAead::~CpuAead() {
  wipe(&gcm_context_, sizeof gcm_context_);
}

Verdict CpuAead::run(const KeyTable& keys, const Key& key, const Job& job) {
  std::uint8_t* const tag = bytes_of(job) + job.cipher_offset + job.cipher_length + job.tag_gap;
  std::uint8_t right[aes_block];
  std::uint8_t* const made = opens(job) ? right : tag;
  if (key.cipher == Cipher::chacha20_poly1305_esp) {
    chacha20_poly1305_esp(key, job, made);
  } else {
    const auto& expanded = *static_cast<const gcm_key_data*>(keys.cpu_gcm_key(job.key));
    const Gcm& by = gcm_[(key.rounds - 10) / 2];
    key.cipher == Cipher::aes_gcm ? gcm(expanded, by, key, job, made) : gcm_esp(expanded, by, key, job, made);
  }
  if (!opens(job)) return Verdict::done;
  return equal(tag, right, key.tag_length) ? Verdict::done : Verdict::tag_mismatch;
}

// With a suffix the additional data is in two places. It is brought together where the suffix borrows the bytes behind
// the clear part, which may be the first of the text: so the text follows in a call of its own.
void CpuAead::gcm(const gcm_key_data& expanded, const Gcm& by, const Key& key, const Job& job, std::uint8_t* tag) {
  std::uint8_t iv[aes_block];
  begin_counter(job, key, 2, iv);
  std::uint8_t* const clear = bytes_of(job);
  std::uint8_t* const text = clear + job.cipher_offset;
  if (!has_suffix(job)) {
    (opens(job) ? by.open : by.seal)(&expanded, &gcm_context_, text, text, job.cipher_length, iv, clear,
                                     job.cipher_offset, tag, aes_block);
    return;
  }
  std::uint8_t borrowed[suffix_length];
  std::memcpy(borrowed, text, suffix_length);
  std::memcpy(text, job.suffix, suffix_length);
  by.begin(&expanded, &gcm_context_, iv, clear, job.cipher_offset + suffix_length);
  std::memcpy(text, borrowed, suffix_length);
  if (job.cipher_length != 0) {
    (opens(job) ? by.open_text : by.seal_text)(&expanded, &gcm_context_, text, text, job.cipher_length);
  }
  (opens(job) ? by.end_opening : by.end_sealing)(&expanded, &gcm_context_, tag, aes_block);
}

CpuAead::Additional::Additional(const Job& job, const Key& key)
    : bytes(bytes_of(job)), length(job.cipher_offset - iv_length) {
  std::memcpy(nonce, key.salt_block, 4);
  std::memcpy(nonce + 4, bytes + length, iv_length);
  if (!has_suffix(job)) return;
  std::memcpy(together, bytes, 4);
  std::memcpy(together + 4, job.suffix, suffix_length);
  std::memcpy(together + 8, bytes + 4, 4);
  bytes = together;
  length = sizeof together;
}

void CpuAead::gcm_esp(const gcm_key_data& expanded, const Gcm& by, const Key& key, const Job& job, std::uint8_t* tag) {
  const Additional additional(job, key);
  std::uint8_t* const text = bytes_of(job) + job.cipher_offset;
  (opens(job) ? by.open : by.seal)(&expanded, &gcm_context_, text, text, job.cipher_length, additional.nonce,
                                   additional.bytes, additional.length, tag, key.tag_length);
}

// A job of the library's, which does it at once: a fifth faster than its functions for parts of a message.
void CpuAead::chacha20_poly1305_esp(const Key& key, const Job& job, std::uint8_t* tag) {
  const Additional additional(job, key);
  IMB_JOB& mb = *IMB_GET_NEXT_JOB(&manager_);
  mb.cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
  mb.hash_alg = IMB_AUTH_CHACHA20_POLY1305;
  mb.cipher_direction = opens(job) ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT;
  mb.chain_order = opens(job) ? IMB_ORDER_HASH_CIPHER : IMB_ORDER_CIPHER_HASH;
  mb.enc_keys = mb.dec_keys = key.round_keys;
  mb.key_len_in_bytes = key_length(key);
  mb.iv = additional.nonce;
  mb.iv_len_in_bytes = sizeof additional.nonce;
  mb.src = bytes_of(job);
  mb.dst = bytes_of(job) + job.cipher_offset;
  mb.cipher_start_src_offset_in_bytes = mb.hash_start_src_offset_in_bytes = job.cipher_offset;
  mb.msg_len_to_cipher_in_bytes = mb.msg_len_to_hash_in_bytes = job.cipher_length;
  mb.u.CHACHA20_POLY1305.aad = additional.bytes;
  mb.u.CHACHA20_POLY1305.aad_len_in_bytes = additional.length;
  mb.auth_tag_output = tag;
  mb.auth_tag_output_len_in_bytes = key.tag_length;
  IMB_SUBMIT_JOB(&manager_);
}

}  // namespace sluice::crypto
