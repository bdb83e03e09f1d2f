// Asks for a cache line ahead of its use. Never faults.
//
// Not __builtin_prefetch: GCC takes a function of nothing but those for one without effect, and leaves out its calls.
#pragma once

#include <cstddef>

namespace sluice {

inline void prefetch(const void* address) {
  asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(address)));
}

// For a line that will be written: another core or a device may have it meanwhile.
inline void prefetch_for_write(const void* address) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
}

// The lines of so many bytes, 1 at least.
inline void prefetch(const void* address, std::size_t bytes) {
  constexpr std::size_t line = 64;
  const char* const begin = static_cast<const char*>(address);
  const char* const end = begin + bytes;
  for (const char* at = begin; at < end; at += line) prefetch(at);
  prefetch(end - 1);
}
inline void prefetch_for_write(const void* address, std::size_t bytes) {
  constexpr std::size_t line = 64;
  const char* const begin = static_cast<const char*>(address);
  const char* const end = begin + bytes;
  for (const char* at = begin; at < end; at += line) prefetch_for_write(at);
}

}  // namespace sluice
