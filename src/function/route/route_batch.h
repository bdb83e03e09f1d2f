// The router's area of a batch. argument: an IPv4 frame's destination (host order), or an IPv6 frame's index into the
// keys. verdict: the id of an IPv4 frame's next hop. keys6: 16 bytes for each IPv6 frame, with an id for each in
// answers6; where there is any, has_key6 has a bit for each frame that says whether it has one.
//
// A frame of which nothing is looked up has argument 0, and nobody reads its verdict.
#pragma once

#include <cstdint>

#include "engine/batch.h"
#include "engine/options.h"
#include "lookup/next_hop.h"

namespace sluice::function {

inline constexpr std::uint32_t key6_bytes = 16;
using Key6 = std::uint8_t[key6_bytes];

struct RouteArea {
  struct alignas(64) Header {
    std::uint32_t keys6;  // how many
  };
  static constexpr std::uint32_t header_per_frame = 1, bits_per_frame = 1;  // bytes: whole words, of the smallest batch
  static constexpr std::uint32_t bytes_per_frame =
      header_per_frame + key6_bytes + sizeof(lookup::NextHopId) * 2 + sizeof(std::uint32_t) + bits_per_frame;
  static_assert(sizeof(Header) <= header_per_frame * engine::batch_range.least);

  RouteArea(std::byte* area, std::uint32_t capacity)
      : header(reinterpret_cast<Header*>(area)),
        keys6(reinterpret_cast<Key6*>(area + sizeof(Header))),
        answers6(reinterpret_cast<lookup::NextHopId*>(keys6 + capacity)),
        argument(reinterpret_cast<std::uint32_t*>(answers6 + capacity)),
        verdict(reinterpret_cast<lookup::NextHopId*>(argument + capacity)),
        has_key6(reinterpret_cast<std::uint32_t*>(verdict + capacity)) {}

  Header* header;
  Key6* keys6;
  lookup::NextHopId* answers6;
  std::uint32_t* argument;
  lookup::NextHopId* verdict;
  std::uint32_t* has_key6;
};

}  // namespace sluice::function
