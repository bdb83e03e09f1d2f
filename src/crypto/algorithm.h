// What a key can be for: the registry of algorithms, and what of each a device can do.
//
// An algorithm is a cipher and the hash beside it, if any: one entry with all that is particular to it: the lengths of
// its keys, how one is expanded, and known answers. Each lies in a file of its own, or in that of its cipher, of which
// algorithms() names the entry; the table of keys, the known answers and the self-test go over the registry and know
// none of them. Jobs do not change: a key's slot says what it is for.
//
// A device says what it can do by its Side (cpu_side(), gpu_side()), and gets no other keys. A job whose key it does
// not have fails there. So whoever makes keys asks side_for() where their jobs may go: once for each key, not for each
// packet. SRTP need not ask: its suites are done by cores and by GPUs.
//
// Thread-safety: constant after the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "crypto/job.h"
#include "crypto/key.h"
#include "crypto/known_answer.h"

struct IMB_MGR;

namespace sluice::crypto {

struct KeyMaterial;

// Lengths in bytes: `least`, and every `step` to `most`.
struct Lengths {
  std::size_t least = 0, most = 0, step = 1;
  constexpr bool has(std::size_t length) const {
    return length >= least && length <= most && (length - least) % step == 0;
  }
};

// Where a key is expanded to. `gcm_key` (gcm_key_data) is there if the algorithm needs_gcm_key.
struct Slot {
  Key* key;
  void* gcm_key;
};

struct Algorithm {
  Cipher cipher;
  Hash hash;
  std::string_view name;
  std::span<const std::size_t> key_lengths;  // in ascending order
  std::size_t salt_length;
  Lengths auth_key, tag;
  bool needs_gcm_key;                                   // a table of keys that has been made with these
  std::span<const KnownAnswer> answers;                 // of every key length
  void (*expand)(IMB_MGR*, const KeyMaterial&, Slot&);  // into a slot of zeros but for the salt and what it is for
};

// All that there are.
std::span<const Algorithm* const> algorithms();
// nullptr: none is registered for it.
const Algorithm* algorithm(Cipher cipher, Hash hash);
// Empty, or why there is no such key: what is wrong, with what is allowed. `gcm`: whether a table is made for GCM.
std::string why_no_key(const KeyMaterial& material, bool gcm);
// Empty, or why no device may be given this job under `key` (job.h): for who takes jobs from others.
std::string why_no_job(const Key& key, const Job& job);

// What a device can do. Whether one is there, and its answers are right, its driver says (device/gpu.h, selftest.h).
struct Side {
  std::string_view name;  // "intel-ipsec-mb", "CUDA"
  int priority;           // the highest is asked first
  bool (*can)(const Algorithm& algorithm, std::size_t key_length);
};
// What intel-ipsec-mb does on a core: everything that is registered.
const Side& cpu_side();
// What the kernels of gpu_crypto do, on any GPU.
const Side& gpu_side();
// The first of `sides`, by priority, that can do it; nullptr: none.
const Side* side_for(std::span<const Side* const> sides, Cipher cipher, Hash hash, std::size_t key_length);

}  // namespace sluice::crypto
