// How a warp authenticates the lines of its packets that stand in shared memory (gpu_jobs.cuh): each lane a packet of
// its own by HMAC, and by GHASH the additional data of one; eight lanes the text of a packet by GHASH, each with a
// power of H.
#pragma once

#include <cstdint>

#include "crypto/aes.cuh"
#include "crypto/ghash.cuh"
#include "crypto/gpu_bytes.cuh"
#include "crypto/gpu_hmac.cuh"
#include "crypto/gpu_work.cuh"
#include "crypto/key.h"
#include "crypto/sha1.cuh"
#include "device/frame_read.cuh"
#include "device/launch.h"

namespace sluice::crypto {

template <typename For>
struct Tag {
  std::uint32_t word[For::tag_words];  // as they lie in memory
};

__device__ __forceinline__ uint4 counter_block(uint4 counter, std::uint32_t count) {
  counter.w ^= __byte_perm(count, 0, 0x0123);
  return counter;
}

// All lanes together, but for what is said of the lane's packet.
template <typename For>
class Authenticator {
 public:
  __device__ Authenticator(WarpMemory<For>& memory, const std::uint32_t* aes)
      : memory_(memory), aes_(aes), lane_(threadIdx.x % 32) {}

  // Of the walk in which it is authenticated.
  __device__ int steps_of(const Packet& packet) const {
    if (!packet.there) return 0;
    const int message = blocks_of(packet) * (For::all && is_wide(packet.all.hash) ? 128 : 64);
    const int hashed = packet.gcm ? packet.text_begin() + 16 * packet.text_blocks() : packet.begin + message;
    const int end = hashed + packet.all.lag > packet.read_end ? hashed + packet.all.lag : packet.read_end;
    return end < line ? 1 : (end + line - 1) / line;
  }

  // Of the lane's packet, all blocks that are there.
  __device__ void hash_additional(Packet& packet, int step) {
    if (!packet.there || !packet.gcm) return;
    const bool inserts = For::all && packet.all.inserts;
    const int clear = packet.clear - (inserts ? packet.all.iv : 0);
    const int moved = inserts ? packet.suffix_length : 0;  // bytes from the fifth on
    while (packet.additional < packet.additional_blocks()) {
      const int from = 16 * packet.additional;
      const int end = from + 16 - moved < clear ? from + 16 - moved : clear;
      if (packet.begin + end > (step + 1) * line) return;
      FieldElement x = field_element(memory_.hash[lane_]);
      SLUICE_UNROLL
      for (int w = 0; w < 4; ++w) {
        const int place = from + 4 * w < 4 ? 0 : from + 4 * w - moved;
        const bool is_suffix = moved != 0 && from + 4 * w == 4;
        const int there = is_suffix ? 0 : clear - place;
        const int at = kept + packet.begin + place - step * line;
        const std::uint32_t word = there > 0 ? __byte_perm(row_word(memory_.row[lane_], at), 0, 0x0123) : 0;
        x.word[3 - w] ^= with_tail(word, there, inserts && !is_suffix ? 0 : packet.suffix);
      }
      const FieldElement h = field_element(power(memory_.place[lane_].key, 1));
      memory_.hash[lane_] = field_bytes(field_product(x, h));
      ++packet.additional;
    }
  }

  // Of packet p, the blocks that end in this step, one for each of eight lanes: all lanes together. What is hashed so
  // far goes into the first of them; each is multiplied by H once for itself and once for each behind it. The caller
  // has the warp meet before it looks at the hash again.
  __device__ void hash_text(unsigned p, int step) {
    const Place& place = memory_.place[p];
    const int i = static_cast<int>(lane_ % 8), text = place.cipher_end - place.cipher_begin;
    const int late = (place.cipher_begin + 15) % 16 + 1 - 16;  // of the first byte in its block, 0 to -15
    const int begin = step * line + 16 * i + late;
    const int block = (begin - place.cipher_begin) / 16, blocks = (text + 15) / 16;
    const bool there = place.gcm && begin >= place.cipher_begin && block < blocks;
    FieldElement product = {};
    if (there) {
      const std::uint32_t* const row = memory_.row[p];
      const int at = kept + 16 * i + late;
      uint4 bytes = make_uint4(row_word(row, at), row_word(row, at + 4), row_word(row, at + 8), row_word(row, at + 12));
      bytes = device::bytes_and(bytes, device::byte_mask(0, text - 16 * block));
      if (block == 0 || i == 0) bytes = device::bytes_xor(bytes, memory_.hash[p]);
      const int behind = blocks - 1 - block < 7 - i ? blocks - 1 - block : 7 - i;
      product = field_product(field_element(bytes), field_element(power(place.key, behind + 1)));
    }
    SLUICE_UNROLL
    for (int w = 0; w < 4; ++w) {
      SLUICE_UNROLL
      for (int by = 1; by < 8; by *= 2) product.word[w] ^= __shfl_xor_sync(every_lane, product.word[w], by);
    }
    const unsigned those = __ballot_sync(every_lane, there) >> (lane_ & ~7u) & 0xFF;
    __syncwarp();  // another lane may be the one that has read it
    if (i == 0 && those != 0) memory_.hash[p] = field_bytes(product);
  }

  // Of the lane's packet, the blocks of HMAC's message that end in this step.
  __device__ void hash_messages(Packet& packet, int step) {
    if constexpr (!For::all) {
      if (!packet.there || packet.gcm) return;
      hash_blocks_of<64>(packet, step, [&](std::uint32_t(&w)[16]) { sha1_block(packet.sha, w); });
    } else {
      if (!packet.there || packet.all.hash == Hash::none) return;
      MessageState& state = packet.all.state;
      if (packet.all.hash == Hash::hmac_sha1) {
        hash_blocks_of<64>(packet, step, [&](std::uint32_t(&w)[16]) { absorb_sha1(state, w); });
      } else if (packet.all.hash == Hash::hmac_sha256) {
        hash_blocks_of<64>(packet, step, [&](std::uint32_t(&w)[16]) { absorb_sha256(state, w); });
      } else {
        hash_blocks_of<128>(packet, step, [&](std::uint32_t(&w)[32]) { absorb_sha512(state, w); });
      }
    }
  }

  // Of a packet that is opened, the bytes of the tag that have come.
  __device__ void take_tag(const Packet& packet, int step) {
    if (!packet.there || !packet.opens) return;
    const int from = packet.tag_begin - step * line;
    if (from >= line || from + packet.tag_length <= 0) return;
    const auto* const row = reinterpret_cast<const std::uint8_t*>(memory_.row[lane_]);
    auto* const tag = reinterpret_cast<std::uint8_t*>(memory_.tag_units[lane_]);
    for (int i = 0; i < packet.tag_length; ++i)
      if (from + i >= 0 && from + i < line) tag[i] = row[kept + from + i];
  }

  // Every byte is looked at, whatever the others are.
  __device__ bool same(const Tag<For>& tag, int length) const {
    std::uint32_t differs = 0;
    SLUICE_UNROLL
    for (int i = 0; i < For::tag_words; ++i)
      differs |= (tag.word[i] ^ memory_.tag_units[lane_][i]) & device::word_mask(0, length - 4 * i);
    return differs == 0;
  }

  // Of the lane's packet, which has been hashed.
  __device__ Tag<For> tag(Packet& packet) const { return packet.gcm ? gcm_tag(packet) : hmac_tag(packet); }

 private:
  static constexpr int kept = For::kept;

  static __device__ int blocks_of(const Packet& packet) {
    const int length = packet.authenticated() + packet.suffix_length;
    if constexpr (For::all) return hash_blocks(packet.all.hash, length);
    return hash_blocks(Hash::hmac_sha1, length);
  }
  static __device__ uint4 power(const Key* key, int exponent) {
    return __ldcg(reinterpret_cast<const uint4*>(key->power[exponent - 1]));
  }

  template <int block, typename Absorb>
  __device__ __forceinline__ void hash_blocks_of(const Packet& packet, int step, Absorb&& absorb) {
    // Where the first of them begins, as counted from the line's begin: 0 or in front of it.
    const int first = -((2 * block - packet.begin % block - packet.all.lag) % block) - packet.all.lag;
    SLUICE_ROLLED
    for (int b = 0; b < line / block; ++b) {
      const int at = first + block * b, from = step * line + at - packet.begin;
      if (from < 0 || from >= block * blocks_of(packet)) continue;
      std::uint32_t w[block / 4];
      take_block(memory_.row[lane_], kept + at, w);
      if (from + block > packet.authenticated()) {
        const bool last = from / block == blocks_of(packet) - 1;
        const int length = block + packet.authenticated() + packet.suffix_length;
        end_message(w, packet.authenticated() - from, packet.suffix, packet.suffix_length,
                    last ? static_cast<std::uint32_t>(length) * 8 : 0);
      }
      absorb(w);
    }
  }

  __device__ Tag<For> hmac_tag(Packet& packet) const {
    const auto* const outer = memory_.place[lane_].key->hmac.outer.word32;
    Tag<For> tag = {};
    if constexpr (For::all) {
      if (packet.all.hash != Hash::none) finish_hmac(packet.all.hash, packet.all.state, outer);
      SLUICE_UNROLL
      for (int i = 0; i < For::tag_words; ++i) tag.word[i] = packet.all.state.word[i];
    } else {
      Sha1State sha;
      std::uint32_t w[16] = {};
      SLUICE_UNROLL
      for (int i = 0; i < 5; ++i) {
        sha.word[i] = __ldcg(outer + i);
        w[i] = packet.sha.word[i];
      }
      w[5] = 0x80000000u;
      w[15] = (64 + sha1_length) * 8;
      sha1_block(sha, w);
      SLUICE_UNROLL
      for (int i = 0; i < 5; ++i) tag.word[i] = __byte_perm(sha.word[i], 0, 0x0123);
    }
    return tag;
  }

  __device__ Tag<For> gcm_tag(const Packet& packet) const {
    const Place& place = memory_.place[lane_];
    FieldElement x = field_element(memory_.hash[lane_]);
    x.word[2] ^= static_cast<std::uint32_t>(packet.additional_length()) * 8;
    x.word[0] ^= static_cast<std::uint32_t>(packet.text) * 8;
    const uint4 hash = field_bytes(field_product(x, field_element(power(place.key, 1))));
    const uint4 mask = aes_encipher(aes_, memory_.keys[lane_], place.rounds, counter_block(memory_.counter[lane_], 1));
    return {{hash.x ^ mask.x, hash.y ^ mask.y, hash.z ^ mask.z, hash.w ^ mask.w}};
  }

  WarpMemory<For>& memory_;
  const std::uint32_t* const aes_;
  const unsigned lane_;
};

}  // namespace sluice::crypto
