// How rare a few bytes are in ordinary traffic: prose, HTML, scripts, HTTP, JSON, base64, programs, images and zeroes.
//
// By pairs: how often a byte follows another, of 62 kinds of (folded) bytes; scripts/make-byte-pairs counts them and
// makes byte_pairs.cc. Good for judging which piece of a pattern is the rarer one. Words come out rarer than they are.
//
// Thread-safety: constants. Cost: two reads a byte.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::match {

inline constexpr unsigned byte_classes = 62;
// Half bits, from ']' on: -log2 of the share of a byte of this class among all, and behind a byte of the other.
extern const char* const byte_pairs_first;
extern const char* const byte_pairs_next[byte_classes];

// Folded bytes only. The numbers are places in the tables.
constexpr unsigned byte_class(std::uint8_t byte) {
  constexpr std::string_view punctuation = " \r\n\t/.-_=:;,\"'<>()&%?+*#{}[]";
  if (byte >= 'a' && byte <= 'z') return byte - 'a';
  if (byte >= '0' && byte <= '9') return byte <= '1' ? 26 + byte - '0' : 28;
  const std::size_t at = punctuation.find(static_cast<char>(byte));
  if (at != std::string_view::npos) return 29 + static_cast<unsigned>(at);
  constexpr unsigned rest = 29 + punctuation.size();
  return rest + (byte == 0 ? 0 : byte < 0x20 ? 1 : byte < 0x80 ? 2 : byte < 0xff ? 3 : 4);
}

// -log2 of how often `bytes`, folded, are at a place.
inline float bits_of(std::string_view bytes) {
  if (bytes.empty()) return 0;
  unsigned before = byte_class(static_cast<std::uint8_t>(bytes[0]));
  int halves = byte_pairs_first[before] - ']';
  for (const char c : bytes.substr(1)) {
    const unsigned here = byte_class(static_cast<std::uint8_t>(c));
    halves += byte_pairs_next[before][here] - ']';
    before = here;
  }
  return static_cast<float>(halves) / 2;
}

}  // namespace sluice::match
