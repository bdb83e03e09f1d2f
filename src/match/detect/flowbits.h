// The named bits of a flow that rules set and ask for, as numbers; and their values.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace sluice::match {

inline constexpr std::size_t max_flowbits = 512;
using FlowBits = std::bitset<max_flowbits>;

}  // namespace sluice::match
