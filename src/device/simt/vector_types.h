// CUDA's built-in vector types and dim3, with CUDA's alignments, for kernels compiled by the host compiler.
#pragma once

#include <cstddef>
#include <cstdint>

#define SLUICE_SIMT_VECTORS(type, name, a2, a4)                      \
  struct name##1 {                                                   \
    type x;                                                          \
  };                                                                 \
  struct alignas(a2) name##2 {                                       \
    type x, y;                                                       \
  };                                                                 \
  struct name##3 {                                                   \
    type x, y, z;                                                    \
  };                                                                 \
  struct alignas(a4) name##4 {                                       \
    type x, y, z, w;                                                 \
  };                                                                 \
  constexpr name##1 make_##name##1(type x) {                         \
    return {x};                                                      \
  }                                                                  \
  constexpr name##2 make_##name##2(type x, type y) {                 \
    return {x, y};                                                   \
  }                                                                  \
  constexpr name##3 make_##name##3(type x, type y, type z) {         \
    return {x, y, z};                                                \
  }                                                                  \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { \
    return {x, y, z, w};                                             \
  }

SLUICE_SIMT_VECTORS(signed char, char, 2, 4)
SLUICE_SIMT_VECTORS(unsigned char, uchar, 2, 4)
SLUICE_SIMT_VECTORS(short, short, 4, 8)
SLUICE_SIMT_VECTORS(unsigned short, ushort, 4, 8)
SLUICE_SIMT_VECTORS(int, int, 8, 16)
SLUICE_SIMT_VECTORS(unsigned int, uint, 8, 16)
SLUICE_SIMT_VECTORS(long, long, 16, 16)
SLUICE_SIMT_VECTORS(unsigned long, ulong, 16, 16)
SLUICE_SIMT_VECTORS(long long, longlong, 16, 16)
SLUICE_SIMT_VECTORS(unsigned long long, ulonglong, 16, 16)
SLUICE_SIMT_VECTORS(float, float, 8, 16)
SLUICE_SIMT_VECTORS(double, double, 16, 16)
#undef SLUICE_SIMT_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
