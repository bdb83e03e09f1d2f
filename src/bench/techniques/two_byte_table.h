// A stride of two bytes for an Aho-Corasick automaton: from a hot state one read brings it over two bytes (techniques.h
// runs it on the GPU as segments_pairs).
//
// A table of all states and all pairs of bytes takes 256 KiB a state: 51 GB for 23,000 patterns, 5.5 GB for the
// community rules. Two things make it small, the first as in Brodie, Taylor and Cytron (ISCA 2006) and Becchi and
// Crowley (ANCS 2008):
//
//   classes     bytes that lead to the same next state from every state are one class (upper and lower case, bytes that
//               no pattern has), so a state takes 4 * classes^2 bytes: 212 KB with 230 classes
//   hot states  the root and those next to it, in the automaton's breadth-first order, as many as `most_bytes` allows;
//               all others go on by single bytes, with the automaton's own table
//
// In:  an automaton, and how many bytes the table may have. 32 MiB by default, which a large GPU's second-level cache
//      (50 MB) holds beside what else is in use.
// Out: class_of()[byte], and pairs()[(state * classes() + class of the first byte) * classes() + class of the second]:
//      the state after both, with `ends_first` and `ends_second` if a pattern ends at the first or at the second byte.
//      A walk that takes single steps wherever a state is not hot or only a byte is left counts the same ends.
//
// A budget that does not hold the root leaves no hot state; one that holds all states makes each of them hot.
//
// Cost of making it: a read of each entry of the automaton, and one for each entry of the table: 0.15 s for 23,000
// patterns. Memory: bytes(). Thread-safety: immutable once made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/techniques/dfa.h"

namespace sluice::match {

class TwoByteTable {
 public:
  // Of an entry; an entry of the automaton has the first alone.
  static constexpr std::uint32_t ends_first = Dfa::accepts, ends_second = 1u << 30;
  static constexpr std::uint32_t state_mask = ends_second - 1;
  static constexpr std::size_t default_bytes = std::size_t{32} << 20;
  static_assert(Dfa::most_states <= state_mask);

  explicit TwoByteTable(const Dfa& dfa, std::size_t most_bytes = default_bytes);

  std::uint32_t hot_states() const { return hot_states_; }  // states [0, hot_states()) have pairs
  std::uint32_t classes() const { return classes_; }
  const std::array<std::uint8_t, 256>& class_of() const { return class_of_; }
  const std::vector<std::uint32_t>& pairs() const { return pairs_; }
  std::size_t bytes() const { return pairs_.size() * sizeof(std::uint32_t); }

 private:
  std::uint32_t hot_states_ = 0, classes_ = 0;
  std::array<std::uint8_t, 256> class_of_{};
  std::vector<std::uint32_t> pairs_;
};

}  // namespace sluice::match
