// Numbers in the network's byte order, wherever they lie.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::srtp {

inline std::uint16_t load16(const std::uint8_t* at) {
  return static_cast<std::uint16_t>(at[0] << 8 | at[1]);
}
inline std::uint32_t load32(const std::uint8_t* at) {
  return std::uint32_t{load16(at)} << 16 | load16(at + 2);
}

// The value's last `length` bytes.
template <std::size_t length>
void store(std::uint8_t* at, std::uint64_t value) {
  for (std::size_t i = 0; i < length; ++i) {
    at[i] = static_cast<std::uint8_t>(value >> (8 * (length - 1 - i)));
  }
}

}  // namespace sluice::srtp
