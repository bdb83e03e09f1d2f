// A hash table from a hash of 64 bits to indices of 32 bits, with one line of memory for each lookup: a bucket is a
// line of seven entries, each an index with 31 bits of the hash. What an index stands for, and whether its key is the
// right one, the caller knows.
//
// One writer and any number of readers that never wait. Entries never move. A reader finds each entry that is there
// during all of its search; one that comes or goes meanwhile it finds or not. Buckets that are full go on in further
// lines, which come with capacity for the entries promised about once for a hundred buckets.
//
// Why not rte_hash with lock-free readers: docs/ipsec-databases.md.
//
// Thread-safety: prefetch(), probable() and find() any thread; insert(), erase() and replace() one at a time. Cost: a
// line. Memory: 16 to 32 bytes for each entry of `capacity`.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/prefetch.h"
#include "ipsec/huge_memory.h"

namespace sluice::ipsec {

class LineTable {
 public:
  static constexpr std::uint32_t none = 0xffffffff, unsure = 0xfffffffe;  // no indices

  // More than `capacity` entries are possible, at growing cost.
  explicit LineTable(std::size_t capacity)
      : mask_(std::bit_ceil(capacity / 4 + 1) - 1),
        memory_((mask_ + 1) * sizeof(Line)),
        lines_(new (memory_.data()) Line[mask_ + 1]) {}

  // Some time before find().
  void prefetch(std::uint64_t hash) const { sluice::prefetch(&lines_[hash & mask_]); }
  // The index that find() asks about first, to prefetch what it stands for; none: find() would find nothing; unsure:
  // only find() knows. Without branches, for nobody could foretell them.
  std::uint32_t probable(std::uint64_t hash) const {
    const Line& line = lines_[hash & mask_];
    const std::uint32_t tag = tag_of(hash);
    std::array<std::uint64_t, places_of_line> entry;  // as they were: they may go meanwhile
    std::uint32_t places = 0;
    for (std::size_t i = 0; i < entry.size(); ++i) {
      entry[i] = line.entry[i].load(std::memory_order_acquire);
      places |= std::uint32_t{entry[i] >> 32 == tag} << i;
    }
    if (places == 0) return line.more.load(std::memory_order_relaxed) == nullptr ? none : unsure;
    return static_cast<std::uint32_t>(entry[std::countr_zero(places)]);
  }
  // The first index with this hash for which is(index) says true, or none.
  template <class Is>
  std::uint32_t find(std::uint64_t hash, const Is& is) const {
    const std::uint32_t tag = tag_of(hash);
    for (const Line* line = &lines_[hash & mask_]; line != nullptr; line = line->more.load(std::memory_order_acquire)) {
      for (const auto& place : line->entry) {
        const std::uint64_t entry = place.load(std::memory_order_acquire);
        if (entry >> 32 == tag && is(static_cast<std::uint32_t>(entry))) return static_cast<std::uint32_t>(entry);
      }
    }
    return none;
  }

  // What is behind `index` is complete: readers find it from now on.
  void insert(std::uint64_t hash, std::uint32_t index) { exchange(hash, 0, entry_of(hash, index)); }
  // `index` is there with this hash.
  void erase(std::uint64_t hash, std::uint32_t index) { exchange(hash, entry_of(hash, index), 0); }
  // In one step: readers find the one or the other.
  void replace(std::uint64_t hash, std::uint32_t index, std::uint32_t by) {
    exchange(hash, entry_of(hash, index), entry_of(hash, by));
  }

 private:
  static constexpr std::size_t places_of_line = 7;
  struct alignas(64) Line {
    std::array<std::atomic<std::uint64_t>, places_of_line> entry{};  // tag << 32 | index; 0: free
    std::atomic<Line*> more{nullptr};
  };

  // Never 0.
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32) | 0x80000000; }
  static std::uint64_t entry_of(std::uint64_t hash, std::uint32_t index) {
    return std::uint64_t{tag_of(hash)} << 32 | index;
  }

  void exchange(std::uint64_t hash, std::uint64_t before, std::uint64_t after) {
    Line* line = &lines_[hash & mask_];
    while (true) {
      for (auto& place : line->entry) {
        if (place.load(std::memory_order_relaxed) != before) continue;
        place.store(after, std::memory_order_release);
        return;
      }
      Line* const more = line->more.load(std::memory_order_relaxed);
      if (more == nullptr && before != 0) return;
      if (more == nullptr) {
        further_.push_back(std::make_unique<Line>());
        line->more.store(further_.back().get(), std::memory_order_release);
      }
      line = line->more.load(std::memory_order_relaxed);
    }
  }

  const std::size_t mask_;
  const HugeMemory memory_;
  Line* const lines_;
  std::vector<std::unique_ptr<Line>> further_;
};

}  // namespace sluice::ipsec
