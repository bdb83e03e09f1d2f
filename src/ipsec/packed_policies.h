// Policies one after the other, four at a time: for those of masks that few others have, where a hash table for each
// mask would be asked in vain most of the time.
//
// Constant once it is made. Thread-safety: any thread. Cost: find() 0.25 ns for each policy of IPv4 up to the first
// that matches. Memory: 32 bytes for each policy of IPv4, 80 of IPv6, and 16.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "ipsec/packet_key.h"
#include "ipsec/policy_entry.h"

namespace sluice::ipsec {

// `words` of a PacketKey are looked at: 2 of IPv4, 5 of IPv6.
template <std::size_t words>
class PackedPolicies {
 public:
  // `policies` in the order in which they are to match.
  explicit PackedPolicies(const std::vector<const PolicyEntry*>& policies = {}) {
    blocks_.resize((policies.size() + lanes - 1) / lanes);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      Block& block = blocks_[i / lanes];
      const MaskedKey masked = masked_key(policies[i]->policy.selector);
      for (std::size_t word = 0; word < words; ++word) {
        block.mask[word][i % lanes] = masked.mask.word[word];
        block.value[word][i % lanes] = masked.value.word[word];
      }
      if (i % lanes == 0) block.lowest = policies[i]->rank;
      block.policy[i % lanes] = policies[i];
    }
  }

  // The first that matches, of those whose rank is at most `rank`; null: none.
  const PolicyEntry* find(const PacketKey& key, std::uint64_t rank) const {
    for (const Block& block : blocks_) {
      if (block.lowest > rank) return nullptr;
      __m256i differs = _mm256_setzero_si256();
      for (std::size_t word = 0; word < words; ++word) {
        const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(key.word[word]));
        const __m256i masked = _mm256_and_si256(bits, load(block.mask[word]));
        differs = _mm256_or_si256(differs, _mm256_xor_si256(masked, load(block.value[word])));
      }
      const __m256i same = _mm256_cmpeq_epi64(differs, _mm256_setzero_si256());
      const auto lane = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(same)));
      if (lane == 0) continue;
      const PolicyEntry* const policy = block.policy[static_cast<std::size_t>(std::countr_zero(lane))];
      return policy->rank > rank ? nullptr : policy;
    }
    return nullptr;
  }

  bool empty() const { return blocks_.empty(); }

 private:
  static constexpr std::size_t lanes = 4;
  using Row = std::array<std::uint64_t, lanes>;
  // A place without a policy matches nothing: its value has bits outside of its mask.
  struct alignas(32) Block {
    Block() { value[0].fill(1); }
    std::array<Row, words> mask{}, value{};
    std::uint64_t lowest = 0;  // rank
    std::array<const PolicyEntry*, lanes> policy{};
  };
  static __m256i load(const Row& row) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(row.data())); }

  std::vector<Block> blocks_;
};

}  // namespace sluice::ipsec
