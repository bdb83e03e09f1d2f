// How the router uses a batch. argument: an IPv4 frame's destination (host order), or an IPv6 frame's index into the
// keys. verdict: the id of an IPv4 frame's next hop. extra: 16-byte IPv6 keys, then one id for each, then, where there
// is any key, a bit for each frame that says whether it has one.
#pragma once

#include <cstdint>

#include "engine/batch.h"
#include "lookup/next_hop.h"

namespace sluice::function {

inline constexpr std::uint32_t key6_bytes = 16;
inline constexpr std::uint32_t bits_per_frame = 1;  // bytes: whole words, also of the smallest batch
inline constexpr std::uint32_t route_extra_per_frame = key6_bytes + sizeof(lookup::NextHopId) + bits_per_frame;
using Key6 = std::uint8_t[key6_bytes];

inline Key6* keys6(const engine::Batch& batch) {
  return reinterpret_cast<Key6*>(batch.extra);
}
inline lookup::NextHopId* answers6(const engine::Batch& batch) {
  return reinterpret_cast<lookup::NextHopId*>(batch.extra + static_cast<std::size_t>(batch.capacity) * key6_bytes);
}
inline std::uint32_t* has_key6(const engine::Batch& batch) {
  return reinterpret_cast<std::uint32_t*>(answers6(batch) + batch.capacity);
}

}  // namespace sluice::function
