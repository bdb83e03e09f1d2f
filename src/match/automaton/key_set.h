// Keys: what stands for a pattern in the GPU's scan. A key is a piece of 2 to 8 bytes of a pattern, folded to lower
// case, at a place where ordinary traffic rarely agrees. A frame that holds a pattern holds its key, so keys never
// miss; a frame that holds a key need not hold the pattern: who asks for patterns confirms them.
//
// Patterns of one byte have no key: `without_key` names them, and the caller has to treat them as always there.
//
// Thread-safety: immutable once made. Cost of making: about 5 us per pattern.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "match/automaton/pattern.h"

namespace sluice::match {

struct Key {
  static constexpr unsigned max_length = 8;
  static constexpr unsigned gram = 4;            // keys of at least that many bytes are found by their last four
  std::array<std::uint8_t, max_length> bytes{};  // the first `length` of them
  std::uint8_t length = 0;
  ClassMask classes = 0;  // the union of its patterns'
};

// How rare ordinary traffic has the rarest piece of a pattern that may be its key: -log2 of the share of places; 0
// where it has none.
float key_rarity(std::string_view pattern);

class KeySet {
 public:
  static constexpr std::size_t least_pattern = 2;  // bytes; shorter ones have no key

  explicit KeySet(std::span<const Pattern> patterns);

  const std::vector<Key>& keys() const { return keys_; }
  // The patterns (by index) that key `k` stands for.
  std::span<const std::uint32_t> patterns_of(std::uint32_t k) const {
    return {pattern_.data() + first_[k], first_[k + 1] - first_[k]};
  }
  const std::vector<std::uint32_t>& without_key() const { return without_key_; }

 private:
  std::vector<Key> keys_;
  std::vector<std::uint32_t> first_;    // keys_.size() + 1
  std::vector<std::uint32_t> pattern_;  // grouped by key
  std::vector<std::uint32_t> without_key_;
};

}  // namespace sluice::match
