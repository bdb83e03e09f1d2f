// The tables by which the GPU finds keys (key_set.h) in frames: for each byte of a payload one bit is read, that says
// whether the four bytes that end there may be the end of a key; where it is set, the few keys that end so are
// compared.
//
// The idea is that of DFC (Choi et al., NSDI 2016) and of Hyperscan's FDR: a filter that lies in the first-level cache
// instead of an automaton that lies in memory. No byte waits for the one before it, so a warp's lanes never diverge on
// the length of their frames, and a frame may be cut anywhere.
//
//   filter      2^filter_bits bits: is the hash of these four bytes the end of a key of at least four bytes
//   short_ends  65,536 bits for each class: do these two bytes end a key of two or three bytes of that class
//   bucket      2^bucket_bits + 1 numbers: where the keys of a hash begin in `entry`; the same for short keys,
//               by a hash of two bytes
//   entry       16 bytes a key
//
// Size: at most 1 bit in 64 of the filter is set, up to 2^20 bits (128 KiB, 16 K keys; above that it fills up: 2.2 %
// with 23 K keys).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "match/automaton/key_set.h"

namespace sluice::match {

struct alignas(16) GramEntry {
  std::uint64_t bytes;    // the key's bytes, the last one highest; what is in front of a shorter key is 0
  std::uint32_t id_size;  // index of the key * 16 + its length
  ClassMask classes;
};

// The tables where the reader is, as plain pointers; the same layout on host and device.
struct GramView {
  const std::uint32_t* filter;
  const std::uint32_t* short_ends;    // 2048 words a class
  const std::uint32_t* bucket;        // 2^bucket_bits + 1
  const std::uint32_t* short_bucket;  // 2^short_bucket_bits + 1
  const GramEntry* entry;
  std::uint32_t filter_shift;  // 32 - filter_bits
  std::uint32_t bucket_shift;
  ClassMask short_classes;  // which have short keys at all
  bool whole = false;       // a frame with more than max_hits keys is searched to its end all the same
};

class GramTable {
 public:
  static constexpr unsigned short_bucket_bits = 12;
  static constexpr unsigned short_words = 65536 / 32;

  explicit GramTable(const KeySet& keys);

  // One block of memory, to be copied whole: `bytes()` of it, and the view of a copy at `base` (16-byte aligned).
  const std::vector<std::uint32_t>& words() const { return words_; }
  std::size_t bytes() const { return words_.size() * sizeof(std::uint32_t); }
  GramView view(const void* base) const;
  GramView view() const { return view(words_.data()); }
  // The block itself; the table keeps what view() of a copy needs.
  std::vector<std::uint32_t> take_words() { return std::exchange(words_, {}); }

  // Of four bytes, the first lowest; of two.
  static constexpr std::uint32_t gram_hash(std::uint32_t gram) { return gram * 0x9E3779B1u; }
  static constexpr std::uint32_t short_hash(std::uint32_t two) {
    return (two * 0x9E3779B1u) >> (32 - short_bucket_bits);
  }

 private:
  std::vector<std::uint32_t> words_;
  std::size_t short_at_ = 0, bucket_at_ = 0, short_bucket_at_ = 0, entry_at_ = 0;  // in words
  unsigned filter_bits_ = 0, bucket_bits_ = 0;
  ClassMask short_classes_ = 0;
};

}  // namespace sluice::match
