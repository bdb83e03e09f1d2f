// Jobs whose keys have a hash, on a core: those of one kind (direction, cipher and key length, hash) are done together,
// in the lanes of vectors. For .cc files of this room only.
#pragma once

#include <cstdint>
#include <span>

#include "crypto/ipsec_mb.h"
#include "crypto/job.h"
#include "crypto/key.h"

namespace sluice::crypto {

class CpuBursts {
 public:
  explicit CpuBursts(IMB_MGR& manager);
  ~CpuBursts();
  CpuBursts(const CpuBursts&) = delete;
  CpuBursts& operator=(const CpuBursts&) = delete;

  // What a run is of; all of it stays until finish().
  struct Run {
    const Key* keys;
    std::span<const Job> jobs;
    std::span<Verdict> verdicts;
  };
  // Job `i`; or does 64 of its kind when it is the last of these.
  void add(const Run& run, std::uint32_t i);
  // What is left.
  void finish(const Run& run);

 private:
  static constexpr unsigned most = 64;  // four times SHA-1's widest: what is left over in the last round weighs little
  static constexpr unsigned ciphers = 7, hashes = 4, kinds = 2 * ciphers * hashes;

  // What a job needs besides the library's own record of it.
  struct Extra {
    alignas(16) std::uint8_t iv[aes_block];
    std::uint8_t digest[64];
    std::uint8_t suffix[sizeof Job::suffix];
    std::uint8_t borrowed[sizeof Job::suffix];  // what was where the suffix lies meanwhile
    std::uint8_t tag_length;
    bool has_suffix;
    std::uint8_t* behind;  // the enciphered part
    std::uint8_t* tag;
    Verdict* verdict;
  };

  void do_kind(const Run& run, unsigned kind);
  void prepare(const Key& key, const Job& job, Verdict& verdict);
  void encipher(unsigned cipher, bool opens);
  void authenticate(unsigned hash);
  void write_tags();
  void keep_authentic();

  IMB_MGR& manager_;
  // By kind: numbers of jobs that wait. A bit of `waiting_` for each kind that has some.
  std::uint32_t numbers_[kinds][most];
  std::uint8_t counts_[kinds] = {};
  std::uint64_t waiting_ = 0;
  static_assert(kinds <= 64);
  // Of the kind that is being done: one place for all, so that it stays in the cache.
  unsigned count_ = 0;
  IMB_JOB jobs_[most] = {};
  Extra extra_[most] = {};
};

// The counter block, or GCM's nonce, that a job of SRTP begins with, `at` being where its ten bytes go (job.h).
inline void begin_counter(const Job& job, const Key& key, std::size_t at, std::uint8_t* iv) {
  __builtin_memcpy(iv, key.salt_block, aes_block);
  for (std::size_t i = 0; i < sizeof job.nonce; ++i) iv[at + i] ^= job.nonce[i];
}

inline std::uint8_t* bytes_of(const Job& job) {
  return reinterpret_cast<std::uint8_t*>(job.data);
}

}  // namespace sluice::crypto
