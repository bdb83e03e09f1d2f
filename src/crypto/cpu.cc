#include "crypto/cpu.h"

#include <utility>

#include "base/prefetch.h"
#include "crypto/algorithm.h"
#include "crypto/cpu_aead.h"
#include "crypto/cpu_bursts.h"
#include "crypto/ipsec_mb.h"
#include "packet/checksum.h"

namespace sluice::crypto {
namespace {

constexpr std::size_t cache_line = 64;

// A load whose value nobody waits for. So many prefetches as come here at once would be dropped in part (seen on Zen 4:
// a sixth slower).
void touch(const void* bytes, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end; at += cache_line) {
    asm volatile("" : : "r"(static_cast<const volatile std::uint8_t*>(bytes)[at]));
  }
}

// The keys of 100,000 sessions come from memory, not from a cache. What a key's first line says, which comes first, is
// how much else of it is needed.
void fetch_keys(const KeyTable& table, const Key* keys, std::span<const Job> jobs, std::size_t i) {
  constexpr std::size_t line_ahead = 24, ahead = 12, aead_ahead = 4;
  if (i + line_ahead < jobs.size()) touch(keys + jobs[i + line_ahead].key, 0, 1);
  if (i + ahead < jobs.size()) {
    const Key& key = keys[jobs[i + ahead].key];
    if (key.hash != Hash::none) {
      touch(&key.hmac, 32, offsetof(HmacStates, outer) + digest_length(key.hash));
      if (key.rounds != 0) touch(key.round_keys, 0, aes_block * (key.rounds + 1U));
    }
  }
  if (i + aead_ahead < jobs.size()) {
    const std::uint32_t slot = jobs[i + aead_ahead].key;
    const Key& key = keys[slot];
    if (key.cipher == Cipher::chacha20_poly1305_esp) {
      prefetch(key.round_keys);
    } else if (key.hash == Hash::none) {
      prefetch(table.cpu_gcm_key(slot), sizeof(gcm_key_data));
    }
  }
}

}  // namespace

struct Cpu::State {
  Manager manager;
  IMB_ARCH instruction_set = IMB_ARCH_NONE;
  CpuBursts bursts;
  CpuAead aead;

  explicit State(ChosenManager chosen)
      : manager(std::move(chosen.manager)), instruction_set(chosen.instruction_set), bursts(*manager), aead(*manager) {}
};

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
  return Cpu(std::make_unique<State>(std::move(*chosen)));
}

Cpu::Cpu(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cpu::Cpu(Cpu&&) noexcept = default;
Cpu& Cpu::operator=(Cpu&&) noexcept = default;
Cpu::~Cpu() = default;

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
  const CpuBursts::Run run{keys.keys().data(), jobs, verdicts};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    fetch_keys(keys, run.keys, jobs, i);
    const Key& key = run.keys[jobs[i].key];
    if (key.hash == Hash::none) {
      verdicts[i] = state_->aead.run(keys, key, jobs[i]);
    } else {
      state_->bursts.add(run, static_cast<std::uint32_t>(i));
    }
  }
  state_->bursts.finish(run);
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
