// Which of a batch's keys is a frame's: what the element writes for each frame, for itself and for kernels.
#pragma once

#include <cstdint>

namespace sluice::function {

// The index of an IPv4 key; of an IPv6 key, with this bit.
inline constexpr std::uint32_t place_is_key6 = 0x8000'0000;
// No key: the frame goes on; it is dropped as acl_malformed. Both are larger than any index.
inline constexpr std::uint32_t place_not_ip = 0xffff'ffff;
inline constexpr std::uint32_t place_malformed = 0xffff'fffe;

}  // namespace sluice::function
