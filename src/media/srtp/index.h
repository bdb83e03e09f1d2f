// The 48-bit packet index: guessed from 16 bits (RFC 3711 section 3.3.1 and appendix A), and the window of those that
// have been seen (section 3.3.2).
#pragma once

#include <cstdint>
#include <span>

#include "media/srtp/status.h"

namespace sluice::srtp {

inline constexpr std::uint64_t max_rtp_index = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t max_rtcp_index = (std::uint64_t{1} << 31) - 1;

// The index with the 16 bits `sequence` that is nearest to `highest`, which differs from it by less than 2^15. Where
// that would be below 0, the one above, which is further away than that: to protect it is too old (channel.h). Above
// 2^48 - 1 it is given as it is, for the caller to refuse.
constexpr std::uint64_t guess_index(std::uint64_t highest, std::uint16_t sequence) {
  const std::uint64_t low = highest & 0xffff;
  std::uint64_t roc = highest >> 16;
  if (low < 0x8000) {
    roc -= static_cast<std::uint64_t>(sequence > low + 0x8000 && roc != 0);
  } else {
    roc += static_cast<std::uint64_t>(low - 0x8000 > sequence);
  }
  return roc << 16 | sequence;
}

// A bit for each of the last `64 * words.size()` indexes, a power of two of them: index i is bit i modulo their number.
// `highest` is the caller's; nothing here is locked.
Status check_window(std::span<const std::uint64_t> words, std::uint64_t highest, std::uint64_t index);
// Marks `index`, which check_window() has let through, and raises `highest`. As many steps as the index is ahead, at
// most the window's length.
void mark_window(std::span<std::uint64_t> words, std::uint64_t& highest, std::uint64_t index);

}  // namespace sluice::srtp
