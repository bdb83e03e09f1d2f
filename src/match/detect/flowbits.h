// The named bits of a flow that rules set and ask for, as numbers; and their values, in the layout of flow::Extra.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::match {

inline constexpr std::size_t max_flowbits = 512;
using FlowBits = std::array<std::uint64_t, max_flowbits / 64>;

inline void set_bit(FlowBits& bits, std::size_t at) {
  bits[at / 64] |= std::uint64_t{1} << at % 64;
}
inline bool has_bit(const FlowBits& bits, std::size_t at) {
  return (bits[at / 64] >> at % 64 & 1) != 0;
}
inline bool has_any(const FlowBits& bits, const FlowBits& mask) {
  bool any = false;
  for (std::size_t i = 0; i < bits.size(); ++i) any |= (bits[i] & mask[i]) != 0;
  return any;
}
inline bool has_all(const FlowBits& bits, const FlowBits& mask) {
  bool all = true;
  for (std::size_t i = 0; i < bits.size(); ++i) all &= (bits[i] & mask[i]) == mask[i];
  return all;
}

}  // namespace sluice::match
