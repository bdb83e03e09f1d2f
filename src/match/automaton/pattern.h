// What a multi-pattern matcher looks for: byte strings, each with the classes of traffic in which it matters.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::match {

// Up to 32 classes of traffic, a bit each; a frame belongs to one. What a class is, is the caller's: rule groups by
// protocol, ports and direction.
using ClassMask = std::uint32_t;
inline constexpr unsigned max_classes = 32;
inline constexpr ClassMask every_class = ~ClassMask{0};

struct Pattern {
  std::string bytes;
  bool nocase = false;
  ClassMask classes = every_class;
};

// ASCII only, as Snort and Suricata fold: bytes above 0x7f stay.
constexpr std::uint8_t fold(std::uint8_t byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<std::uint8_t>(byte | 0x20) : byte;
}

}  // namespace sluice::match
