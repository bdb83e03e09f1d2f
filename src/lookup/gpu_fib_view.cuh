// Lookups for kernels that do more than look up. Any thread, no cooperation with others, no shared memory.
//
//     const std::uint32_t next_hop = lookup::lookup4(view, destination_in_host_order);
//
// Cost: one dependent 4-byte read for a prefix of up to 24 bits, one more for each 8 bits beyond. The reads are
// ordinary ones, through L1: strong ones (volatile, relaxed) made IPv6 lookups 3.5 times slower (docs/lookup.md).
// gpu_fib.h says why a line in L1 that is out of date does no harm.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "lookup/gpu_fib.h"

namespace sluice::lookup {

__device__ inline std::uint32_t lookup4(Fib4View view, std::uint32_t destination_host_order) {
  const std::uint32_t entry = view.slots[destination_host_order >> 8];
  return (entry & Trie::child_flag) == 0 ? entry : view.slots[(entry << 8) + (destination_host_order & 255)];
}

// The address as four words whose bytes are in network order, as a 16-byte load gives them.
__device__ inline std::uint32_t lookup6(Fib6View view, uint4 destination) {
  constexpr unsigned swap = 0x0123;
  const std::uint32_t first = __byte_perm(destination.x, 0, swap);
  std::uint32_t entry = view.slots[first >> 8];
  // The bytes that are still to be used, the next one highest: all in registers, where an array would not be.
  std::uint64_t next = static_cast<std::uint64_t>(first) << 56 |
                       static_cast<std::uint64_t>(__byte_perm(destination.y, 0, swap)) << 24 |
                       __byte_perm(destination.z, 0, swap) >> 8;
  std::uint64_t later = static_cast<std::uint64_t>(__byte_perm(destination.z, 0, swap)) << 56 |
                        static_cast<std::uint64_t>(__byte_perm(destination.w, 0, swap)) << 24;
  while ((entry & Trie::child_flag) != 0) {
    entry = view.slots[(entry << 8) + static_cast<std::uint32_t>(next >> 56)];
    next = next << 8 | later >> 56;
    later <<= 8;
  }
  return entry;
}

}  // namespace sluice::lookup
