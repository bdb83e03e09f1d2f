#include "crypto/cpu_bursts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "crypto/secret.h"

namespace sluice::crypto {
namespace {

constexpr unsigned widths = 3;
constexpr IMB_KEY_SIZE_BYTES key_sizes[widths] = {IMB_KEY_128_BYTES, IMB_KEY_192_BYTES, IMB_KEY_256_BYTES};
constexpr IMB_HASH_ALG hash_names[] = {IMB_AUTH_HMAC_SHA_1, IMB_AUTH_HMAC_SHA_256, IMB_AUTH_HMAC_SHA_384,
                                       IMB_AUTH_HMAC_SHA_512};
constexpr std::size_t suffix_length = sizeof Job::suffix;

std::uint8_t* text_of(const Job& job) {
  return bytes_of(job) + job.cipher_offset;
}
std::uint8_t* behind_text(const Job& job) {
  return text_of(job) + job.cipher_length;
}
bool has_suffix(const Job& job) {
  return (job.flags & job_has_suffix) != 0;
}

void make_counter(const Job& job, const Key& key, std::uint8_t* iv) {
  if (key.cipher == Cipher::aes_ctr) {
    begin_counter(job, key, 4, iv);
    return;
  }
  constexpr std::uint8_t one[4] = {0, 0, 0, 1};
  std::memcpy(iv, key.salt_block, 4);
  std::memcpy(iv + 4, text_of(job) - 8, 8);
  std::memcpy(iv + 12, one, 4);
}

}  // namespace

CpuBursts::CpuBursts(IMB_MGR& manager) : manager_(manager) {
  for (unsigned i = 0; i < most_at_once; ++i) {
    jobs_[i].iv_len_in_bytes = aes_block;
    jobs_[i].auth_tag_output = extra_[i].digest;
  }
}

CpuBursts::~CpuBursts() {
  wipe(jobs_, sizeof jobs_);
  wipe(iv_, sizeof iv_);
  wipe(extra_, sizeof extra_);
}

unsigned CpuBursts::cipher_of(const Key& key) {
  return (key.cipher == Cipher::aes_cbc ? widths : 0) + (key.rounds - 10U) / 2;
}

void CpuBursts::add(const Run& run, std::uint32_t i) {
  const Job& job = run.jobs[i];
  const Key& key = run.keys[job.key];
  hashing_[static_cast<std::size_t>(key.hash) - 1].add(i);
  if ((job.flags & job_opens) == 0 && key.rounds != 0) sealing_[cipher_of(key)].add(i);
  if (++noted_ == most_noted) finish(run);
}

void CpuBursts::finish(const Run& run) {
  if (noted_ == 0) return;
  for (unsigned cipher = 0; cipher < ciphers; ++cipher) encipher(run, sealing_[cipher], cipher, false);
  for (unsigned hash = 0; hash < hashes; ++hash) authenticate(run, hashing_[hash], hash);
  for (unsigned cipher = 0; cipher < ciphers; ++cipher) encipher(run, opening_[cipher], cipher, true);
  noted_ = 0;
}

void CpuBursts::encipher(const Run& run, List& list, unsigned cipher, bool opens) {
  static constexpr std::uint8_t zeros[aes_block] = {};
  const bool chained = cipher >= widths;
  // Where CBC seals, the IV is the first block that is enciphered, after one of zeros.
  const std::size_t iv_too = chained && !opens ? aes_block : 0;
  const std::span<const std::uint32_t> all(list.job, std::exchange(list.count, 0U));
  for (std::size_t at = 0; at < all.size(); at += most_at_once) {
    const auto these = all.subspan(at, std::min<std::size_t>(most_at_once, all.size() - at));
    for (std::size_t n = 0; n < these.size(); ++n) {
      const Job& job = run.jobs[these[n]];
      const Key& key = run.keys[job.key];
      IMB_JOB& mb = jobs_[n];
      mb.src = bytes_of(job);
      mb.dst = text_of(job) - iv_too;
      mb.enc_keys = mb.dec_keys = key.round_keys;
      mb.cipher_start_src_offset_in_bytes = job.cipher_offset - iv_too;
      mb.msg_len_to_cipher_in_bytes = job.cipher_length + iv_too;
      if (chained) {
        mb.iv = opens ? text_of(job) - aes_block : zeros;
      } else {
        make_counter(job, key, iv_[n]);
        mb.iv = iv_[n];
      }
    }
    IMB_SUBMIT_CIPHER_BURST_NOCHECK(&manager_, jobs_, static_cast<std::uint32_t>(these.size()),
                                    chained ? IMB_CIPHER_CBC : IMB_CIPHER_CNTR,
                                    chained && opens ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT, key_sizes[cipher % widths]);
  }
}

void CpuBursts::authenticate(const Run& run, List& list, unsigned hash) {
  const std::span<const std::uint32_t> all(list.job, std::exchange(list.count, 0U));
  for (std::size_t at = 0; at < all.size(); at += most_at_once) {
    authenticate(run, all.subspan(at, std::min<std::size_t>(most_at_once, all.size() - at)), hash);
  }
}

void CpuBursts::authenticate(const Run& run, std::span<const std::uint32_t> these, unsigned hash) {
  for (std::size_t n = 0; n < these.size(); ++n) {
    const Job& job = run.jobs[these[n]];
    const Key& key = run.keys[job.key];
    IMB_JOB& mb = jobs_[n];
    mb.src = bytes_of(job);
    mb.msg_len_to_hash_in_bytes = std::uint64_t{job.cipher_offset} + job.cipher_length;
    mb.auth_tag_output_len_in_bytes = digest_length(key.hash);
    mb.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<const std::uint8_t*>(&key.hmac.inner);
    mb.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<const std::uint8_t*>(&key.hmac.outer);
    if (!has_suffix(job)) continue;
    mb.msg_len_to_hash_in_bytes += suffix_length;
    std::memcpy(extra_[n].borrowed, behind_text(job), suffix_length);
    std::memcpy(behind_text(job), job.suffix, suffix_length);
  }
  IMB_SUBMIT_HASH_BURST_NOCHECK(&manager_, jobs_, static_cast<std::uint32_t>(these.size()), hash_names[hash]);
  for (std::size_t n = 0; n < these.size(); ++n) end(run, these[n], extra_[n]);
}

// Only what is authentic is deciphered.
void CpuBursts::end(const Run& run, std::uint32_t i, const Extra& extra) {
  const Job& job = run.jobs[i];
  const Key& key = run.keys[job.key];
  if (has_suffix(job)) std::memcpy(behind_text(job), extra.borrowed, suffix_length);
  std::uint8_t* const tag = behind_text(job) + job.tag_gap;
  if ((job.flags & job_opens) == 0) {
    std::memcpy(tag, extra.digest, key.tag_length);
    run.verdicts[i] = Verdict::done;
    return;
  }
  const bool right = equal(tag, extra.digest, key.tag_length);
  run.verdicts[i] = right ? Verdict::done : Verdict::tag_mismatch;
  if (right && key.rounds != 0) opening_[cipher_of(key)].add(i);
}

}  // namespace sluice::crypto
