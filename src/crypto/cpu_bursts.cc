#include "crypto/cpu_bursts.h"

#include <bit>
#include <cstring>

#include "crypto/secret.h"

namespace sluice::crypto {
namespace {

// A kind is (opens, cipher, hash) as one number.
enum CipherKind : unsigned { counter, chained = 3, in_clear = 6 };  // the first two of three widths each
constexpr unsigned hash_count = 4;

unsigned cipher_kind(const Key& key) {
  if (key.rounds == 0) return in_clear;
  return (key.cipher == Cipher::aes_cbc ? chained : counter) + (key.rounds - 10U) / 2;
}

constexpr IMB_KEY_SIZE_BYTES key_sizes[] = {IMB_KEY_128_BYTES, IMB_KEY_192_BYTES, IMB_KEY_256_BYTES};
constexpr IMB_HASH_ALG hash_names[] = {IMB_AUTH_HMAC_SHA_1, IMB_AUTH_HMAC_SHA_256, IMB_AUTH_HMAC_SHA_384,
                                       IMB_AUTH_HMAC_SHA_512};
constexpr std::uint8_t zeros[aes_block] = {};
constexpr std::size_t suffix_length = sizeof Job::suffix;

}  // namespace

CpuBursts::CpuBursts(IMB_MGR& manager) : manager_(manager) {
  static_assert(hashes == hash_count && ciphers == in_clear + 1);
  for (unsigned i = 0; i < most; ++i) {
    jobs_[i].iv_len_in_bytes = aes_block;
    jobs_[i].auth_tag_output = extra_[i].digest;
  }
}

CpuBursts::~CpuBursts() {
  wipe(jobs_, sizeof jobs_);
  wipe(extra_, sizeof extra_);
}

void CpuBursts::add(const Run& run, std::uint32_t i) {
  const Job& job = run.jobs[i];
  const Key& key = run.keys[job.key];
  const unsigned opens = job.flags & job_opens;
  const unsigned kind = (opens * ciphers + cipher_kind(key)) * hashes + static_cast<unsigned>(key.hash) - 1;
  numbers_[kind][counts_[kind]++] = i;
  if (counts_[kind] == most) {
    do_kind(run, kind);
  } else {
    waiting_ |= std::uint64_t{1} << kind;
  }
}

void CpuBursts::finish(const Run& run) {
  while (waiting_ != 0) do_kind(run, static_cast<unsigned>(std::countr_zero(waiting_)));
}

void CpuBursts::do_kind(const Run& run, unsigned kind) {
  const unsigned hash = kind % hashes, cipher = kind / hashes % ciphers;
  const bool opens = kind / hashes / ciphers != 0;
  count_ = 0;
  for (const std::uint32_t i : std::span(numbers_[kind]).first(counts_[kind])) {
    prepare(run.keys[run.jobs[i].key], run.jobs[i], run.verdicts[i]);
  }
  counts_[kind] = 0;
  waiting_ &= ~(std::uint64_t{1} << kind);
  if (opens) {
    authenticate(hash);
    keep_authentic();
    encipher(cipher, true);
  } else {
    encipher(cipher, false);
    authenticate(hash);
    write_tags();
  }
}

void CpuBursts::prepare(const Key& key, const Job& job, Verdict& verdict) {
  IMB_JOB& mb = jobs_[count_];
  Extra& extra = extra_[count_];
  ++count_;
  std::uint8_t* const data = bytes_of(job);
  std::uint8_t* const text = data + job.cipher_offset;
  std::size_t from = job.cipher_offset;
  mb.iv = extra.iv;
  if (key.cipher == Cipher::aes_ctr) {
    begin_counter(job, key, 4, extra.iv);
  } else if (key.cipher == Cipher::aes_ctr_esp) {
    constexpr std::uint8_t one[4] = {0, 0, 0, 1};
    std::memcpy(extra.iv, key.salt_block, 4);
    std::memcpy(extra.iv + 4, text - 8, 8);
    std::memcpy(extra.iv + 12, one, 4);
  } else if (key.cipher == Cipher::aes_cbc) {
    // Where it seals, the IV is the first block that is enciphered, after one of zeros.
    mb.iv = key.opens != 0 ? text - aes_block : zeros;
    if (key.opens == 0) from -= aes_block;
  }
  extra.behind = text + job.cipher_length;
  extra.tag = extra.behind + job.tag_gap;
  extra.tag_length = key.tag_length;
  extra.has_suffix = (job.flags & job_has_suffix) != 0;
  extra.verdict = &verdict;
  if (extra.has_suffix) {
    std::memcpy(extra.borrowed, extra.behind, suffix_length);
    std::memcpy(extra.suffix, job.suffix, suffix_length);
  }
  mb.src = data;
  mb.dst = data + from;
  mb.enc_keys = mb.dec_keys = key.round_keys;
  mb.cipher_start_src_offset_in_bytes = from;
  mb.msg_len_to_cipher_in_bytes = job.cipher_offset + job.cipher_length - from;
  mb.msg_len_to_hash_in_bytes =
      std::uint64_t{job.cipher_offset} + job.cipher_length + (extra.has_suffix ? suffix_length : 0);
  mb.auth_tag_output_len_in_bytes = digest_length(key.hash);
  mb.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<const std::uint8_t*>(&key.hmac.inner);
  mb.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<const std::uint8_t*>(&key.hmac.outer);
}

void CpuBursts::encipher(unsigned cipher, bool opens) {
  if (cipher == in_clear || count_ == 0) return;
  const IMB_KEY_SIZE_BYTES key_size = key_sizes[cipher % 3];
  if (cipher < chained) {
    IMB_SUBMIT_CIPHER_BURST_NOCHECK(&manager_, jobs_, count_, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT, key_size);
  } else {
    IMB_SUBMIT_CIPHER_BURST_NOCHECK(&manager_, jobs_, count_, IMB_CIPHER_CBC, opens ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT,
                                    key_size);
  }
}

void CpuBursts::authenticate(unsigned hash) {
  for (Extra& extra : std::span(extra_).first(count_)) {
    if (extra.has_suffix) std::memcpy(extra.behind, extra.suffix, suffix_length);
  }
  IMB_SUBMIT_HASH_BURST_NOCHECK(&manager_, jobs_, count_, hash_names[hash]);
  for (Extra& extra : std::span(extra_).first(count_)) {
    if (extra.has_suffix) std::memcpy(extra.behind, extra.borrowed, suffix_length);
  }
}

void CpuBursts::write_tags() {
  for (const Extra& extra : std::span(extra_).first(count_)) {
    std::memcpy(extra.tag, extra.digest, extra.tag_length);
    *extra.verdict = Verdict::done;
  }
}

// Only what is authentic is deciphered.
void CpuBursts::keep_authentic() {
  unsigned kept = 0;
  for (unsigned i = 0; i < count_; ++i) {
    const Extra& extra = extra_[i];
    const bool right = equal(extra.tag, extra.digest, extra.tag_length);
    *extra.verdict = right ? Verdict::done : Verdict::tag_mismatch;
    if (!right) continue;
    if (kept != i) {
      std::uint8_t* const digest = jobs_[kept].auth_tag_output;
      jobs_[kept] = jobs_[i];  // its IV stays where it is
      jobs_[kept].auth_tag_output = digest;
    }
    ++kept;
  }
  count_ = kept;
}

}  // namespace sluice::crypto
