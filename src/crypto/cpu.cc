#include "crypto/cpu.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/prefetch.h"
#include "crypto/algorithm.h"
#include "crypto/ipsec_mb.h"
#include "crypto/secret.h"
#include "packet/checksum.h"

namespace sluice::crypto {
namespace {

constexpr unsigned group_size = 64;  // four times SHA-1's widest: what is left over in the last round weighs little
constexpr std::size_t suffix_length = sizeof Job::suffix;

// What a counter-mode job needs besides the library's own record of it.
struct Extra {
  alignas(16) std::uint8_t iv[aes_block];
  std::uint8_t digest[sha1_length];
  std::uint8_t suffix[suffix_length];
  std::uint8_t borrowed[suffix_length];  // what was where the suffix lies meanwhile
  std::uint8_t tag_length;
  bool has_suffix;
  std::uint8_t* behind;  // the enciphered part
  std::uint8_t* tag;
  Verdict* verdict;
};

// By what a group's jobs are enciphered, as their keys' rounds say it.
enum class Width : std::uint8_t { aes_128, aes_192, aes_256, none };
constexpr std::size_t widths = 4;

constexpr Width width_of(const Key& key) {
  return key.rounds == 0 ? Width::none : static_cast<Width>((key.rounds - 10) / 2);
}

// Jobs with HMAC-SHA1 of one direction and width: the library does a group in one call.
struct Group {
  IMB_JOB jobs[group_size] = {};
  Extra extra[group_size] = {};
  unsigned count = 0;
};

void make_iv(const Job& job, const Key& key, std::size_t at, std::uint8_t* iv) {
  std::memcpy(iv, key.salt_block, aes_block);
  for (std::size_t i = 0; i < sizeof job.nonce; ++i) {
    iv[at + i] ^= job.nonce[i];
  }
}

void prefetch_bytes(const void* bytes, std::size_t length) {
  constexpr std::size_t cache_line = 64;
  for (std::size_t at = 0; at < length; at += cache_line) {
    prefetch(static_cast<const std::uint8_t*>(bytes) + at);
  }
}

// The keys of 100,000 sessions come from memory, not from a cache.
void prefetch_keys(const KeyTable& keys, std::span<const Job> jobs, std::size_t i) {
  constexpr std::size_t ahead = 8;
  constexpr std::size_t gcm_ahead = 4;
  if (i + ahead < jobs.size()) {
    prefetch_bytes(&keys.key(jobs[i + ahead].key), sizeof(Key));
  }
  if (i + gcm_ahead < jobs.size()) {
    const std::uint32_t slot = jobs[i + gcm_ahead].key;
    if (keys.key(slot).cipher == Cipher::aes_gcm) {
      prefetch_bytes(keys.cpu_gcm_key(slot), sizeof(gcm_key_data));
    }
  }
}

std::uint8_t* bytes_of(const Job& job) {
  return reinterpret_cast<std::uint8_t*>(job.data);
}

}  // namespace

struct Cpu::State {
  Manager manager;
  IMB_ARCH instruction_set = IMB_ARCH_NONE;
  Group groups[2][widths];  // [opens][Width]
  gcm_context_data gcm = {};

  void add(Group& group, const Key& key, const Job& job, Verdict& verdict);
  void encipher(Group& group, Width width);
  void authenticate(Group& group);
  void seal(Group& group, Width width);
  void open(Group& group, Width width);
  void finish(bool opens, Width width);
  void run_gcm(const KeyTable& keys, const Key& key, const Job& job, Verdict& verdict);
  template <bool wide>
  void seal_gcm(const gcm_key_data& expanded, const Job& job, const std::uint8_t* iv);
  template <bool wide>
  Verdict open_gcm(const gcm_key_data& expanded, const Job& job, const std::uint8_t* iv);
  template <bool wide>
  void begin_gcm(const gcm_key_data& expanded, const Job& job, const std::uint8_t* iv);
};

// --- HMAC-SHA1, with AES in counter mode or none ---

void Cpu::State::add(Group& group, const Key& key, const Job& job, Verdict& verdict) {
  IMB_JOB& mb = group.jobs[group.count];
  Extra& extra = group.extra[group.count];
  ++group.count;
  std::uint8_t* const data = bytes_of(job);
  make_iv(job, key, 4, extra.iv);
  extra.behind = data + job.cipher_offset + job.cipher_length;
  extra.tag = extra.behind + job.tag_gap;
  extra.tag_length = key.tag_length;
  extra.has_suffix = (job.flags & job_has_suffix) != 0;
  extra.verdict = &verdict;
  if (extra.has_suffix) {
    std::memcpy(extra.borrowed, extra.behind, suffix_length);
    std::memcpy(extra.suffix, job.suffix, suffix_length);
  }
  mb.src = data;
  mb.dst = data + job.cipher_offset;
  mb.enc_keys = key.round_keys;
  mb.iv = extra.iv;
  mb.cipher_start_src_offset_in_bytes = job.cipher_offset;
  mb.msg_len_to_cipher_in_bytes = job.cipher_length;
  mb.msg_len_to_hash_in_bytes =
      std::uint64_t{job.cipher_offset} + job.cipher_length + (extra.has_suffix ? suffix_length : 0);
  mb.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<const std::uint8_t*>(&key.hmac.inner);
  mb.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<const std::uint8_t*>(&key.hmac.outer);
}

void Cpu::State::encipher(Group& group, Width width) {
  if (width == Width::none) return;
  constexpr IMB_KEY_SIZE_BYTES sizes[] = {IMB_KEY_128_BYTES, IMB_KEY_192_BYTES, IMB_KEY_256_BYTES};
  const IMB_KEY_SIZE_BYTES key_size = sizes[static_cast<std::size_t>(width)];
  IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager.get(), group.jobs, group.count, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT, key_size);
}

void Cpu::State::authenticate(Group& group) {
  for (unsigned i = 0; i < group.count; ++i) {
    Extra& extra = group.extra[i];
    if (extra.has_suffix) {
      std::memcpy(extra.behind, extra.suffix, suffix_length);
    }
  }
  IMB_SUBMIT_HASH_BURST_NOCHECK(manager.get(), group.jobs, group.count, IMB_AUTH_HMAC_SHA_1);
  for (unsigned i = 0; i < group.count; ++i) {
    Extra& extra = group.extra[i];
    if (extra.has_suffix) {
      std::memcpy(extra.behind, extra.borrowed, suffix_length);
    }
  }
}

void Cpu::State::seal(Group& group, Width width) {
  encipher(group, width);
  authenticate(group);
  for (unsigned i = 0; i < group.count; ++i) {
    const Extra& extra = group.extra[i];
    std::memcpy(extra.tag, extra.digest, extra.tag_length);
    *extra.verdict = Verdict::done;
  }
}

void Cpu::State::open(Group& group, Width width) {
  authenticate(group);
  for (unsigned i = 0; i < group.count; ++i) {
    const Extra& extra = group.extra[i];
    const bool right = equal(extra.tag, extra.digest, extra.tag_length);
    *extra.verdict = right ? Verdict::done : Verdict::tag_mismatch;
    if (!right) {
      group.jobs[i].msg_len_to_cipher_in_bytes = 0;
    }
  }
  encipher(group, width);
}

void Cpu::State::finish(bool opens, Width width) {
  Group& group = groups[opens][static_cast<std::size_t>(width)];
  if (group.count == 0) {
    return;
  }
  if (opens) {
    open(group, width);
  } else {
    seal(group, width);
  }
  group.count = 0;
}

// --- GCM ---

// With a suffix the additional data is in two places. It is brought together where the suffix borrows the bytes behind
// the clear part, which may be the first of the text: so the text follows in a call of its own.
template <bool wide>
void Cpu::State::begin_gcm(const gcm_key_data& expanded, const Job& job, const std::uint8_t* iv) {
  std::uint8_t* const behind = bytes_of(job) + job.cipher_offset;
  std::uint8_t borrowed[suffix_length];
  std::memcpy(borrowed, behind, suffix_length);
  std::memcpy(behind, job.suffix, suffix_length);
  const std::uint64_t length = job.cipher_offset + suffix_length;
  if constexpr (wide) {
    IMB_AES256_GCM_INIT(manager.get(), &expanded, &gcm, iv, bytes_of(job), length);
  } else {
    IMB_AES128_GCM_INIT(manager.get(), &expanded, &gcm, iv, bytes_of(job), length);
  }
  std::memcpy(behind, borrowed, suffix_length);
}

template <bool wide>
void Cpu::State::seal_gcm(const gcm_key_data& expanded, const Job& job, const std::uint8_t* iv) {
  std::uint8_t* const clear = bytes_of(job);
  std::uint8_t* const text = clear + job.cipher_offset;
  std::uint8_t* const tag = text + job.cipher_length + job.tag_gap;
  IMB_MGR* const mb = manager.get();
  if ((job.flags & job_has_suffix) == 0) {
    (wide ? mb->gcm256_enc : mb->gcm128_enc)(&expanded, &gcm, text, text, job.cipher_length, iv, clear,
                                             job.cipher_offset, tag, aes_block);
    return;
  }
  begin_gcm<wide>(expanded, job, iv);
  if (job.cipher_length != 0) {
    (wide ? mb->gcm256_enc_update : mb->gcm128_enc_update)(&expanded, &gcm, text, text, job.cipher_length);
  }
  (wide ? mb->gcm256_enc_finalize : mb->gcm128_enc_finalize)(&expanded, &gcm, tag, aes_block);
}

template <bool wide>
Verdict Cpu::State::open_gcm(const gcm_key_data& expanded, const Job& job, const std::uint8_t* iv) {
  std::uint8_t* const clear = bytes_of(job);
  std::uint8_t* const text = clear + job.cipher_offset;
  const std::uint8_t* const tag = text + job.cipher_length + job.tag_gap;
  std::uint8_t right[aes_block];
  IMB_MGR* const mb = manager.get();
  if ((job.flags & job_has_suffix) == 0) {
    (wide ? mb->gcm256_dec : mb->gcm128_dec)(&expanded, &gcm, text, text, job.cipher_length, iv, clear,
                                             job.cipher_offset, right, aes_block);
  } else {
    begin_gcm<wide>(expanded, job, iv);
    if (job.cipher_length != 0) {
      (wide ? mb->gcm256_dec_update : mb->gcm128_dec_update)(&expanded, &gcm, text, text, job.cipher_length);
    }
    (wide ? mb->gcm256_dec_finalize : mb->gcm128_dec_finalize)(&expanded, &gcm, right, aes_block);
  }
  return equal(tag, right, aes_block) ? Verdict::done : Verdict::tag_mismatch;
}

void Cpu::State::run_gcm(const KeyTable& keys, const Key& key, const Job& job, Verdict& verdict) {
  const auto& expanded = *static_cast<const gcm_key_data*>(keys.cpu_gcm_key(job.key));
  std::uint8_t iv[aes_block];
  make_iv(job, key, 2, iv);
  const bool wide = key.rounds == 14;
  if ((job.flags & job_opens) != 0) {
    verdict = wide ? open_gcm<true>(expanded, job, iv) : open_gcm<false>(expanded, job, iv);
  } else {
    wide ? seal_gcm<true>(expanded, job, iv) : seal_gcm<false>(expanded, job, iv);
    verdict = Verdict::done;
  }
}

// --- The side ---

const Side& cpu_side() {
  static constexpr Side side = {
      .name = "intel-ipsec-mb", .priority = 0, .can = [](const Algorithm&, std::size_t) { return true; }};
  return side;
}

Expected<Cpu> Cpu::make() {
  auto chosen = make_manager();
  if (!chosen) {
    return tl::unexpected(chosen.error());
  }
  auto state = std::make_unique<State>();
  state->manager = std::move(chosen->manager);
  state->instruction_set = chosen->instruction_set;
  for (auto& of_direction : state->groups) {
    for (Group& group : of_direction) {
      for (unsigned i = 0; i < group_size; ++i) {
        group.jobs[i].iv_len_in_bytes = aes_block;
        group.jobs[i].auth_tag_output = group.extra[i].digest;
        group.jobs[i].auth_tag_output_len_in_bytes = sha1_length;
      }
    }
  }
  return Cpu(std::move(state));
}

Cpu::Cpu(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cpu::Cpu(Cpu&&) noexcept = default;
Cpu& Cpu::operator=(Cpu&&) noexcept = default;
Cpu::~Cpu() {
  if (state_) {
    wipe(state_->groups, sizeof state_->groups);
    wipe(&state_->gcm, sizeof state_->gcm);
  }
}

namespace {

std::uint16_t sum_of(const Job& job, std::uint32_t tag_length, bool sealed) {
  const std::uint32_t clear = std::uint32_t{job.cipher_offset} + job.cipher_length;
  return packet::fold_sum(packet::partial_sum(bytes_of(job), clear + (sealed ? job.tag_gap + tag_length : 0)));
}

void sum_before(const KeyTable& keys, std::span<const Job> jobs, std::span<Sums> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Job& job = jobs[i];
    if ((job.flags & job_sums_before) == 0) continue;
    sums[i].before = sum_of(job, keys.key(job.key).tag_length, (job.flags & job_opens) != 0);
  }
}

void sum_after(const KeyTable& keys, std::span<const Job> jobs, std::span<Sums> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Job& job = jobs[i];
    if ((job.flags & job_sums_after) == 0) continue;
    sums[i].after = sum_of(job, keys.key(job.key).tag_length, (job.flags & job_opens) == 0);
  }
}

}  // namespace

void Cpu::run(const KeyTable& keys, std::span<const Job> jobs, std::span<Verdict> verdicts, std::span<Sums> sums) {
  sum_before(keys, jobs, sums);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    prefetch_keys(keys, jobs, i);
    const Job& job = jobs[i];
    const Key& key = keys.key(job.key);
    if (key.cipher == Cipher::aes_gcm) {
      state_->run_gcm(keys, key, job, verdicts[i]);
      continue;
    }
    const bool opens = (job.flags & job_opens) != 0;
    const Width width = width_of(key);
    Group& group = state_->groups[opens][static_cast<std::size_t>(width)];
    state_->add(group, key, job, verdicts[i]);
    if (group.count == group_size) {
      state_->finish(opens, width);
    }
  }
  for (const bool opens : {false, true}) {
    for (std::size_t width = 0; width < widths; ++width) {
      state_->finish(opens, static_cast<Width>(width));
    }
  }
  sum_after(keys, jobs, sums);
}

std::string_view Cpu::instruction_set() const {
  switch (state_->instruction_set) {
    case IMB_ARCH_SSE:
      return "SSE";
#if IMB_VERSION_NUM < IMB_VERSION(2, 0, 0)  // has no code for AVX alone
    case IMB_ARCH_AVX:
      return "AVX";
#endif
    case IMB_ARCH_AVX2:
      return "AVX2";
    case IMB_ARCH_AVX512:
      return "AVX512";
    default:
      return "none";
  }
}

}  // namespace sluice::crypto
