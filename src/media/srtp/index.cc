#include "media/srtp/index.h"

#include <algorithm>
#include <cstddef>

namespace sluice::srtp {
namespace {

std::uint64_t bit_of(std::uint64_t index) {
  return std::uint64_t{1} << (index % 64);
}

std::uint64_t& word_of(std::span<std::uint64_t> words, std::uint64_t index) {
  return words[index / 64 % words.size()];
}

}  // namespace

Status check_window(std::span<const std::uint64_t> words, std::uint64_t highest, std::uint64_t index) {
  if (index > highest) {
    return Status::ok;
  }
  if (highest - index >= words.size() * 64) {
    return Status::too_old;
  }
  return (words[index / 64 % words.size()] & bit_of(index)) != 0 ? Status::replayed : Status::ok;
}

void mark_window(std::span<std::uint64_t> words, std::uint64_t& highest, std::uint64_t index) {
  if (index > highest) {
    if (index - highest >= words.size() * 64) {
      std::fill(words.begin(), words.end(), 0);
    } else {
      for (std::uint64_t skipped = highest + 1; skipped < index; ++skipped) {
        word_of(words, skipped) &= ~bit_of(skipped);
      }
    }
    highest = index;
  }
  word_of(words, index) |= bit_of(index);
}

}  // namespace sluice::srtp
