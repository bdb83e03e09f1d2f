// Jobs whose keys have a hash, on a core, in the lanes of vectors: those of one cipher and key length are enciphered
// together, whatever their hashes, and those of one hash are authenticated together, whatever their ciphers and
// directions. So a batch of many algorithms fills the lanes, too. For .cc files of this room only.
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
  // Notes job `i`; does those that are noted when it is the last that there is capacity for.
  void add(const Run& run, std::uint32_t i);
  // Does what is left.
  void finish(const Run& run);

 private:
  // Noted at once: what they are of stays in the second level of cache from one step to the next.
  static constexpr unsigned most_noted = 128;
  // In one call: four times SHA-1's widest, so that what is left over in the last round weighs little.
  static constexpr unsigned most_at_once = 64;
  static constexpr unsigned ciphers = 6, hashes = 4;  // counter mode and CBC, of three key lengths each

  struct List {
    unsigned count = 0;
    std::uint32_t job[most_noted];
    void add(std::uint32_t i) { job[count++] = i; }
  };
  // What of a job is authenticated, besides the library's own record of it.
  struct Extra {
    std::uint8_t digest[64];
    std::uint8_t borrowed[sizeof Job::suffix];  // what was where the suffix lies meanwhile
  };

  static unsigned cipher_of(const Key& key);
  void encipher(const Run& run, List& list, unsigned cipher, bool opens);
  void authenticate(const Run& run, List& list, unsigned hash);
  void authenticate(const Run& run, std::span<const std::uint32_t> these, unsigned hash);
  void end(const Run& run, std::uint32_t i, const Extra& extra);

  IMB_MGR& manager_;
  unsigned noted_ = 0;
  List sealing_[ciphers], hashing_[hashes], opening_[ciphers];
  IMB_JOB jobs_[most_at_once] = {};
  alignas(16) std::uint8_t iv_[most_at_once][aes_block] = {};
  Extra extra_[most_at_once] = {};
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
