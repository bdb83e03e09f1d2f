// What fib.cc asks of rte_fib beyond what its user asks for; the comment at the top of fib.cc says why.
#pragma once

#include <cstdint>

namespace sluice::lookup {

inline constexpr std::uint32_t slack = 64;          // groups that an update needs in passing
inline constexpr std::uint32_t extra_routes4 = 33;  // the parts of an all-ones prefix
inline constexpr std::uint32_t extra_routes6 = 130;

}  // namespace sluice::lookup
