// Keys of hash tables whose entries others choose: who does not know the key cannot have them collide.
//
// Thread-safety: any thread. Cost: a system call, maybe: not for the packet path. Throws where the system has no
// randomness.
#pragma once

#include <cstdint>
#include <random>

namespace sluice {

// From the system's own source.
inline std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace sluice
