// CBC (SP 800-38A 6.2) over packets whose lines stand in shared memory as they come. What is sealed depends on the
// block before it: each lane enciphers a packet of its own, up to eight blocks in a step. What is opened does not:
// eight lanes decipher a packet's.
//
// A block may end in the next line, and is done there. So a line is whole, and stored, only when the next has come.
#pragma once

#include <cstdint>

#include "crypto/aes.cuh"
#include "crypto/gpu_bytes.cuh"
#include "crypto/gpu_work.cuh"
#include "device/frame_read.cuh"
#include "device/launch.h"

namespace sluice::crypto {

// Where the block begins that ends in a line's first unit: 0 to 15 bytes in front of the line.
__device__ __forceinline__ int first_block(const Place& place) {
  return (place.cipher_begin + 15) % 16 - 15;
}

// Bytes at a line's end whose block ends in the next one.
__device__ __forceinline__ int pending_bytes(int cipher_begin) {
  return (16 - cipher_begin % 16) % 16;
}

// Of the lane's packet, the blocks that end in this step.
template <typename For>
__device__ __forceinline__ void seal_chain(WarpMemory<For>& memory, const std::uint32_t* aes, unsigned lane, int step) {
  const Place& place = memory.place[lane];
  if (!place.chains()) return;
  uint4 chain = memory.keystream[lane];
  SLUICE_ROLLED
  for (int i = 0; i < 8; ++i) {
    const int late = 16 * i + first_block(place), begin = step * line + late;
    if (begin < place.cipher_begin || begin + 16 > place.cipher_end) continue;
    std::uint32_t* const row = memory.row[lane];
    chain = device::bytes_xor(chain, row_block(row, For::kept + late));
    chain = aes_encipher(aes, memory.keys[lane], place.rounds, chain);
    put_row_block(row, For::kept + late, chain);
  }
  memory.keystream[lane] = chain;
}

// Of packet p, for each of eight lanes the block that ends in its unit: all lanes together.
template <typename For>
__device__ __forceinline__ void open_chain(WarpMemory<For>& memory, const std::uint32_t* inverse, unsigned p,
                                           unsigned lane, int step) {
  const Place& place = memory.place[p];
  const int i = static_cast<int>(lane % 8);
  const int late = 16 * i + first_block(place), begin = step * line + late;
  const bool there = place.chains() && begin >= place.cipher_begin && begin + 16 <= place.cipher_end;
  std::uint32_t* const row = memory.row[p];
  uint4 sealed = {}, clear = {};
  if (there) {
    sealed = row_block(row, For::kept + late);
    const bool first = i == 0 || begin == place.cipher_begin;
    const uint4 before = first ? memory.keystream[p] : row_block(row, For::kept + late - 16);
    clear = device::bytes_xor(aes_decipher(inverse, memory.keys[p], place.rounds, sealed), before);
  }
  __syncwarp();
  if (there && i == 7) memory.keystream[p] = sealed;
  // Blocks that follow one another may share a word.
  SLUICE_UNROLL
  for (int odd = 0; odd < 2; ++odd) {
    if (there && i % 2 == odd) put_row_block(row, For::kept + late, clear);
    __syncwarp();
  }
}

}  // namespace sluice::crypto
