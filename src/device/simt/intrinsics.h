// Device intrinsics of the SIMT shim, with CUDA's names and meaning. The call site's file and line go into deadlock
// reports.
#pragma once

#include <x86intrin.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "device/simt/block.h"

#define SLUICE_SIMT_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// --- barriers and votes ---
inline void __syncthreads(SLUICE_SIMT_PLACE) {
  sluice::simt::join(sluice::simt::Collective::barrier, ~0u, 0, 0, {file, line});
}
inline int __syncthreads_count(int predicate, SLUICE_SIMT_PLACE) {
  return static_cast<int>(sluice::simt::join(sluice::simt::Collective::barrier, ~0u, predicate != 0, 0, {file, line}));
}
inline int __syncthreads_or(int predicate, SLUICE_SIMT_PLACE) {
  return __syncthreads_count(predicate, file, line) != 0;
}
inline int __syncthreads_and(int predicate, SLUICE_SIMT_PLACE) {
  return __syncthreads_count(!predicate, file, line) == 0;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, SLUICE_SIMT_PLACE) {
  sluice::simt::join(sluice::simt::Collective::sync, mask, 0, 0, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, SLUICE_SIMT_PLACE) {
  return static_cast<unsigned>(
      sluice::simt::join(sluice::simt::Collective::ballot, mask, predicate != 0, 0, {file, line}));
}
inline int __any_sync(unsigned mask, int predicate, SLUICE_SIMT_PLACE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SLUICE_SIMT_PLACE) {
  return __ballot_sync(mask, !predicate, file, line) == 0;
}
// The lanes that have not returned: what a GPU answers where the warp has not diverged.
inline unsigned __activemask() {
  return sluice::simt::live_lanes();
}

namespace sluice::simt {

template <typename T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
T shuffle(unsigned mask, T value, unsigned source, Place place) {
  return from_bits<T>(join(Collective::shuffle, mask, to_bits(value), source, place));
}

template <typename T>
T load_checked(const T* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignof(T) != 0) fail_thread("reads through a misaligned address");
  return *address;
}

template <typename T>
void store_checked(T* address, T value) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignof(T) != 0) fail_thread("writes through a misaligned address");
  *address = value;
}

}  // namespace sluice::simt

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, SLUICE_SIMT_PLACE) {
  const unsigned lane = sluice::simt::lane_id(), segment = lane & ~(width - 1u);
  return sluice::simt::shuffle(mask, value, segment | (source & (width - 1u)), {file, line});
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SLUICE_SIMT_PLACE) {
  const unsigned lane = sluice::simt::lane_id(), in_segment = lane & (width - 1u);
  return sluice::simt::shuffle(mask, value, in_segment >= delta ? lane - delta : lane, {file, line});
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SLUICE_SIMT_PLACE) {
  const unsigned lane = sluice::simt::lane_id(), in_segment = lane & (width - 1u);
  return sluice::simt::shuffle(mask, value, in_segment + delta < unsigned(width) ? lane + delta : lane, {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, SLUICE_SIMT_PLACE) {
  const unsigned lane = sluice::simt::lane_id(), source = lane ^ unsigned(lanes);
  return sluice::simt::shuffle(mask, value, source < ((lane & ~(width - 1u)) + width) ? source : lane, {file, line});
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, SLUICE_SIMT_PLACE) {
  return static_cast<unsigned>(
      sluice::simt::join(sluice::simt::Collective::match, mask, sluice::simt::to_bits(value), 0, {file, line}));
}

#define SLUICE_SIMT_REDUCE(name, kind)                                                                              \
  inline unsigned name(unsigned mask, unsigned value, SLUICE_SIMT_PLACE) {                                          \
    return static_cast<unsigned>(sluice::simt::join(sluice::simt::Collective::kind, mask, value, 0, {file, line})); \
  }
SLUICE_SIMT_REDUCE(__reduce_add_sync, sum)
SLUICE_SIMT_REDUCE(__reduce_min_sync, min)
SLUICE_SIMT_REDUCE(__reduce_max_sync, max)
SLUICE_SIMT_REDUCE(__reduce_and_sync, bit_and)
SLUICE_SIMT_REDUCE(__reduce_or_sync, bit_or)
SLUICE_SIMT_REDUCE(__reduce_xor_sync, bit_xor)
#undef SLUICE_SIMT_REDUCE

// --- bits ---
// The two halves of `a`, each times one of the two low bytes of `b`, and `c`.
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 0xFFFF) * (b & 0xFF) + (a >> 16) * (b >> 8 & 0xFF);
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  x = (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
  x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
  x = (x >> 4 & 0x0F0F0F0F0F0F0F0Full) | (x & 0x0F0F0F0F0F0F0F0Full) << 4;
  return __builtin_bswap64(x);
}
inline unsigned __brev(unsigned x) {
  return static_cast<unsigned>(__brevll(x) >> 32);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> 4 * i & 0xF;
    unsigned byte = bytes >> 8 * (pick & 7) & 0xFF;
    if (pick & 8) byte = byte & 0x80 ? 0xFF : 0;  // replicate the sign
    out |= byte << 8 * i;
  }
  return out;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((std::uint64_t{high} << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(std::uint64_t{x} * y >> 32);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xFF) * (b >> 8 * i & 0xFF);
  return c;
}
inline unsigned __vsadu4(unsigned a, unsigned b) {
  unsigned sum = 0;
  for (int i = 0; i < 4; ++i) {
    const int d = int(a >> 8 * i & 0xFF) - int(b >> 8 * i & 0xFF);
    sum += d < 0 ? -d : d;
  }
  return sum;
}

// --- loads and stores with cache hints: here only checked for alignment ---
#define SLUICE_SIMT_LOAD(name)                  \
  template <typename T>                         \
  T name(const T* address) {                    \
    return sluice::simt::load_checked(address); \
  }
SLUICE_SIMT_LOAD(__ldg)
SLUICE_SIMT_LOAD(__ldca)
SLUICE_SIMT_LOAD(__ldcg)
SLUICE_SIMT_LOAD(__ldcs)
SLUICE_SIMT_LOAD(__ldcv)
SLUICE_SIMT_LOAD(__ldlu)
#undef SLUICE_SIMT_LOAD
#define SLUICE_SIMT_STORE(name)                          \
  template <typename T>                                  \
  void name(T* address, std::type_identity_t<T> value) { \
    sluice::simt::store_checked(address, value);         \
  }
SLUICE_SIMT_STORE(__stwb)
SLUICE_SIMT_STORE(__stcg)
SLUICE_SIMT_STORE(__stcs)
SLUICE_SIMT_STORE(__stwt)
#undef SLUICE_SIMT_STORE

// --- atomics: really atomic, since launches may run on several OS threads ---
#define SLUICE_SIMT_ATOMIC(name, update)                                                                 \
  template <typename T>                                                                                  \
  T name(T* address, std::type_identity_t<T> value) {                                                    \
    T old = __atomic_load_n(address, __ATOMIC_SEQ_CST), next;                                            \
    do next = update;                                                                                    \
    while (!__atomic_compare_exchange(address, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
    return old;                                                                                          \
  }                                                                                                      \
  template <typename T>                                                                                  \
  T name##_system(T* address, std::type_identity_t<T> value) {                                           \
    return name(address, value);                                                                         \
  }                                                                                                      \
  template <typename T>                                                                                  \
  T name##_block(T* address, std::type_identity_t<T> value) {                                            \
    return name(address, value);                                                                         \
  }
SLUICE_SIMT_ATOMIC(atomicAdd, old + value)
SLUICE_SIMT_ATOMIC(atomicSub, old - value)
SLUICE_SIMT_ATOMIC(atomicAnd, old& value)
SLUICE_SIMT_ATOMIC(atomicOr, old | value)
SLUICE_SIMT_ATOMIC(atomicXor, old ^ value)
SLUICE_SIMT_ATOMIC(atomicMin, value < old ? value : old)
SLUICE_SIMT_ATOMIC(atomicMax, value > old ? value : old)
SLUICE_SIMT_ATOMIC(atomicExch, value)
SLUICE_SIMT_ATOMIC(atomicInc, old >= value ? T{0} : T(old + 1))
#undef SLUICE_SIMT_ATOMIC
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  __atomic_compare_exchange(address, &expected, &desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
template <typename T>
T atomicCAS_system(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  return atomicCAS(address, expected, desired);
}
template <typename T>
T atomicCAS_block(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  return atomicCAS(address, expected, desired);
}

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_system() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
// Lets the block's other threads run: a kernel that waits for one of them must call it in its loop.
inline void __nanosleep(unsigned) {
  sluice::simt::yield_thread();
}
inline long long clock64() {
  return static_cast<long long>(__rdtsc());
}

template <typename T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}

#undef SLUICE_SIMT_PLACE
