// Aho-Corasick as a full automaton: for each state and each byte the next state, so that a byte costs one read. What
// Blink (Lin and Wang, JPDC 2019), GASPP and Snap run on the GPU; here to be compared with (techniques.h).
//
// Case is folded. States are numbered breadth first: those near the root, where ordinary traffic stays, come first.
// Memory: 1 KiB a state; an Error above `most_states`. Thread-safety: immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "match/automaton/pattern.h"

namespace sluice::match {

class Dfa {
 public:
  static constexpr std::uint32_t accepts = 1u << 31;  // of an entry: at least one pattern ends here
  static constexpr std::size_t most_states = 1u << 20;

  // Of each pattern the first `depth` bytes.
  static Expected<Dfa> make(std::span<const Pattern> patterns, std::size_t depth);

  std::size_t states() const { return next_.size() / 256; }
  std::size_t depth() const { return depth_; }  // bytes of the longest pattern
  // next()[state * 256 + byte]: the next state, with `accepts`.
  const std::vector<std::uint32_t>& next() const { return next_; }
  // fail()[state]: the state of the longest proper suffix of what led to it.
  const std::vector<std::uint32_t>& fail() const { return fail_; }
  std::size_t bytes() const { return next_.size() * sizeof(std::uint32_t); }

  // At how many positions of the text at least one pattern ends.
  std::uint32_t count(std::string_view text) const;

 private:
  std::vector<std::uint32_t> next_, fail_;
  std::size_t depth_ = 0;
};

}  // namespace sluice::match
