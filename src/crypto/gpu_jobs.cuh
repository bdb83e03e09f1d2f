// A warp does the jobs of up to 32 packets. It walks over them together, a line of 128 bytes of each packet in a step:
// eight lanes share a line, four packets a load, the next step's lines are under way. What is sealed is enciphered
// between load and store, in registers; the line then stands in shared memory as it is authenticated. There each lane
// hashes a packet of its own by SHA-1, and eight lanes a packet by GHASH, each with a power of H.
//
// Offsets of a packet are counted from its first line on. A row of shared memory holds the line of this step and the
// last 64 bytes of the one before, so that a block of either hash that ends in this step is all there. Rows are an odd
// number of words apart, so lanes that read the same word of different rows meet in no bank.
#pragma once

#include <climits>
#include <cstdint>

#include "crypto/aes.cuh"
#include "crypto/ghash.cuh"
#include "crypto/gpu_bytes.cuh"
#include "crypto/job.h"
#include "crypto/key.h"
#include "crypto/sha1.cuh"
#include "device/frame_copy.h"
#include "device/frame_read.cuh"
#include "device/launch.h"

namespace sluice::crypto {

using device::every_lane;

inline constexpr int line = static_cast<int>(device::line_bytes), kept = 64;
inline constexpr int row_words = (kept + line) / 4 + 1;
inline constexpr unsigned key_words = sizeof Key::round_keys / 4;
inline constexpr int unit_bytes = 16;
inline constexpr int tag_bytes = sha1_length;  // the longest tag that is made here
inline constexpr int tag_units_bytes = (unit_bytes - 1 + tag_bytes + unit_bytes - 1) / unit_bytes * unit_bytes;

struct GpuWork {
  const Job* jobs;
  Verdict* verdicts;
  Sums* sums;  // null: nobody asks
  const Key* keys;
  std::uint32_t slots;
  std::uint32_t count;
  device::StagedFrames staged;  // where packets lie; step 0: in host memory
  std::byte* scratch;           // for those in host memory that are opened, `pitch` bytes each
  std::uint64_t pitch;
  bool whole_units;  // the unit that a packet ends in may be written to its end
};

// A packet as the lanes see it that read, encipher and store it. Addresses are those of offset 0.
struct Place {
  std::uint64_t source, target;
  std::uint64_t spill;  // what is read goes there too; 0: nowhere
  const Key* key;
  int load_begin, load_end;      // bytes that are read
  int cipher_begin, cipher_end;  // that are enciphered
  int whole_begin, whole_end;    // units inside are stored whole
  int tag_units = INT_MAX;       // where the unit begins that the tag begins in: those from there on are kept until
                                 // the tag is made; INT_MAX: it is stored byte by byte
  int before_end, after_end;     // from load_begin on, bytes that are summed as they were read, and as they are then
  std::uint8_t rounds;
  bool enciphers;  // in this walk
  bool gcm;
};

struct alignas(16) WarpMemory {
  std::uint32_t keys[32][key_words];
  uint4 counter[32];    // as of job.h, the counter being 0
  uint4 keystream[32];  // the last block of the step before
  uint4 hash[32];       // GHASH so far
  Place place[32];
  std::uint32_t row[32][row_words];
  // Of what is sealed, from Place::tag_units on; without these the tag that came, or is made.
  alignas(unit_bytes) std::uint32_t tag_units[32][tag_units_bytes / 4];
  std::uint32_t before[32], after[32];  // sums of 16-bit words, the first at offset 0
};

// A packet as the lane sees it that authenticates it.
struct Packet {
  int begin = 0;            // of the packet
  int clear = 0, text = 0;  // bytes that are authenticated only, and enciphered
  int tag_begin = 0, tag_length = 0;
  int read_end = 0;  // of the walk in which it is authenticated
  bool there = false, opens = false, gcm = false;
  std::uint64_t suffix = 0;  // in the upper four bytes
  int suffix_length = 0;
  Sha1State sha = {};
  int additional = 0;  // blocks of GCM's additional data that are hashed

  __device__ int authenticated() const { return clear + text; }
  __device__ int sha_blocks() const { return (authenticated() + suffix_length + 9 + 63) / 64; }
  __device__ int additional_blocks() const { return (clear + suffix_length + 15) / 16; }
  __device__ int text_blocks() const { return (text + 15) / 16; }
  __device__ int text_begin() const { return begin + clear; }
  // Of the walk in which it is authenticated.
  __device__ int steps() const {
    if (!there) return 0;
    const int hashed = gcm ? text_begin() + 16 * text_blocks() : begin + 64 * sha_blocks();
    const int end = hashed > read_end ? hashed : read_end;
    return end < line ? 1 : (end + line - 1) / line;
  }
};

__device__ __forceinline__ uint4 counter_block(uint4 counter, std::uint32_t count) {
  counter.w ^= __byte_perm(count, 0, 0x0123);
  return counter;
}

__device__ __forceinline__ int warp_max(int value) {
  for (int by = 16; by > 0; by /= 2) {
    const int other = __shfl_xor_sync(every_lane, value, by);
    value = other > value ? other : value;
  }
  return value;
}

// `sums`: work.sums is written. Else it costs nothing.
template <bool sums>
class JobWarp {
 public:
  __device__ JobWarp(const GpuWork& work, const std::uint32_t* aes, WarpMemory& memory)
      : work_(work), aes_(aes), memory_(memory), lane_(threadIdx.x % 32) {}

  // Jobs [first, first + count), at most 32.
  __device__ void run(unsigned first, unsigned count) {
    count_ = count;
    Packet packet;
    load_job(first, packet);
    __syncwarp();
    load_round_keys();
    __syncwarp();
    walk<true>(packet);
    finish(first, packet);
    __syncwarp();
    if (__any_sync(every_lane, memory_.place[lane_].enciphers)) walk<false>(packet);
    __syncwarp();
    if constexpr (sums) write_sums(first, packet);
  }

  // Nothing secret stays in shared memory.
  __device__ void wipe() {
    auto* const words = reinterpret_cast<std::uint32_t*>(&memory_);
    for (unsigned i = lane_; i < sizeof memory_ / 4; i += 32) words[i] = 0;
  }

 private:
  __device__ void load_job(unsigned first, Packet& packet) {
    Place place = {};
    const std::uint32_t i = first + lane_;
    if (lane_ < count_) {
      const auto* const halves = reinterpret_cast<const uint4*>(work_.jobs + i);
      const uint4 low = __ldcs(halves), high = __ldcs(halves + 1);
      if (low.z < work_.slots) take(i, low, high, place, packet);
    }
    memory_.place[lane_] = place;
    memory_.before[lane_] = memory_.after[lane_] = 0;
  }

  // Of an empty slot, nothing.
  __device__ void take(std::uint32_t i, uint4 low, uint4 high, Place& place, Packet& packet) {
    const Key& slot = work_.keys[low.z];
    const auto* const words = reinterpret_cast<const std::uint32_t*>(&slot);
    const std::uint32_t kind = __ldcg(words + offsetof(Key, cipher) / 4);
    const auto cipher = static_cast<Cipher>(kind & 0xFF);
    if (cipher == Cipher::none) return;
    const std::uint64_t host = std::uint64_t{low.y} << 32 | low.x;
    const bool staged = work_.staged.step != 0;
    const std::uint64_t data =
        staged ? work_.staged.address + static_cast<std::uint64_t>(work_.staged.step * static_cast<std::int64_t>(i))
               : host;
    const unsigned flags = high.w >> 24;

    packet.there = true;
    packet.gcm = cipher == Cipher::aes_gcm;
    packet.opens = (flags & job_opens) != 0;
    packet.begin = static_cast<int>(data % line);
    packet.clear = static_cast<int>(high.z >> 16);
    packet.text = static_cast<int>(high.w & 0xFFFF);
    packet.tag_length = static_cast<int>(kind >> 24);
    packet.tag_begin = packet.begin + packet.authenticated() + static_cast<int>(high.w >> 16 & 0xFF);
    if ((flags & job_has_suffix) != 0) {
      packet.suffix = std::uint64_t{__byte_perm(low.w, 0, 0x0123)} << 32;
      packet.suffix_length = sizeof Job::suffix;
    }
    SLUICE_UNROLL
    for (unsigned w = 0; w < 5; ++w) packet.sha.word[w] = __ldcg(words + offsetof(Key, hmac.inner) / 4 + w);

    const std::uint64_t origin = data - static_cast<unsigned>(packet.begin);
    place.source = place.target = origin;
    place.key = &slot;
    place.rounds = static_cast<std::uint8_t>(kind >> 16);
    place.gcm = packet.gcm;
    place.enciphers = !packet.opens;
    place.load_begin = packet.begin;
    const int clear_end = packet.begin + packet.authenticated();
    place.load_end = packet.opens ? packet.tag_begin + packet.tag_length : sums ? packet.tag_begin : clear_end;
    place.before_end = packet.opens ? place.load_end : clear_end;
    place.after_end = packet.opens ? packet.text_begin() : packet.tag_begin;
    place.cipher_begin = packet.text_begin();
    place.cipher_end = packet.text_begin() + packet.text;
    place.whole_begin = staged ? INT_MIN : place.load_begin;
    place.whole_end = work_.whole_units ? INT_MAX : place.load_end;
    const int tag_units = packet.tag_begin / unit_bytes * unit_bytes;
    if (work_.whole_units && !packet.opens && tag_units >= place.whole_begin) {
      place.tag_units = tag_units;
      place.load_end = packet.tag_begin + packet.tag_length;
    }
    packet.read_end = place.load_end;
    if (packet.opens && !staged) place.spill = reinterpret_cast<std::uint64_t>(work_.scratch) + i * work_.pitch;

    const uint4 salt = __ldcg(reinterpret_cast<const uint4*>(slot.salt_block));
    memory_.counter[lane_] = counter_of(salt, high, packet.gcm);
    memory_.hash[lane_] = make_uint4(0, 0, 0, 0);
  }

  // The ten bytes of the nonce at byte 4, or at 2.
  static __device__ uint4 counter_of(uint4 salt, uint4 high, bool gcm) {
    const std::uint32_t last = high.z & 0xFFFF;
    if (!gcm) return make_uint4(salt.x, salt.y ^ high.x, salt.z ^ high.y, salt.w ^ last);
    return make_uint4(salt.x ^ high.x << 16, salt.y ^ __funnelshift_r(high.x, high.y, 16),
                      salt.z ^ (high.y >> 16 | last << 16), salt.w);
  }

  __device__ void load_round_keys() {
    constexpr unsigned pieces = key_words / 4;
    SLUICE_ROLLED
    for (unsigned i = lane_; i < 32 * pieces; i += 32) {
      const Key* const key = memory_.place[i / pieces].key;
      if (key == nullptr) continue;
      *reinterpret_cast<uint4*>(&memory_.keys[i / pieces][i % pieces * 4]) =
          __ldcg(reinterpret_cast<const uint4*>(key->round_keys[i % pieces]));
    }
  }

  static __device__ uint4 fetch(const Place& place, int offset) {
    if (offset + 16 <= place.load_begin || offset >= place.load_end) return make_uint4(0, 0, 0, 0);
    return __ldcs(reinterpret_cast<const uint4*>(place.source + static_cast<unsigned>(offset)));
  }

  // Over all packets, in steps. `hashes`: they are authenticated.
  template <bool hashes>
  __device__ void walk(Packet& packet) {
    const Place& mine = memory_.place[lane_];
    const int own = hashes ? packet.steps() : mine.enciphers ? (mine.cipher_end + line - 1) / line : 0;
    const int steps = warp_max(own);
    const bool any_gcm = hashes && __any_sync(every_lane, packet.gcm);
    const int unit = static_cast<int>(lane_ % 8) * 16;
    uint4 ahead[8];
    std::uint32_t before[8] = {}, after[8] = {};
    SLUICE_UNROLL
    for (unsigned r = 0; r < 8; ++r)
      ahead[r] = 4 * r < count_ ? fetch(memory_.place[4 * r + lane_ / 8], unit) : uint4{};
    SLUICE_ROLLED
    for (int step = 0; step < steps; ++step) {
      SLUICE_UNROLL
      for (unsigned r = 0; r < 8; ++r) {
        if (4 * r >= count_) continue;
        const uint4 bytes = ahead[r];
        ahead[r] = fetch(memory_.place[4 * r + lane_ / 8], (step + 1) * line + unit);
        pass(4 * r + lane_ / 8, step * line + unit, bytes, before[r], after[r]);
      }
      __syncwarp();
      if (!hashes) continue;
      if (any_gcm) {
        hash_additional(packet, step);
        __syncwarp();
        SLUICE_ROLLED
        for (unsigned r = 0; 4 * r < count_; ++r) hash_text(4 * r + lane_ / 8, step);
      }
      hash_by_sha1(packet, step);
      take_tag(packet, step);
      __syncwarp();
      std::uint32_t* const row = memory_.row[lane_];
      for (int w = 0; w < kept / 4; ++w) row[w] = row[w + line / 4];
      __syncwarp();
    }
    if constexpr (sums) add_up(before, after);
  }

  // What the eight lanes of a line have summed, of four packets at a time.
  __device__ void add_up(const std::uint32_t (&before)[8], const std::uint32_t (&after)[8]) {
    SLUICE_UNROLL
    for (unsigned r = 0; r < 8; ++r) {
      if (4 * r >= count_) continue;
      const std::uint32_t of_line[] = {device::line_sum(before[r]), device::line_sum(after[r])};
      if (lane_ % 8 != 0) continue;
      memory_.before[4 * r + lane_ / 8] += of_line[0];
      memory_.after[4 * r + lane_ / 8] += of_line[1];
    }
    __syncwarp();
  }

  // One unit on its way: all lanes together.
  __device__ __forceinline__ void pass(unsigned p, int offset, uint4 bytes, std::uint32_t& before,
                                       std::uint32_t& after) {
    const Place& place = memory_.place[p];
    if constexpr (sums) before = add_words(bytes, offset, place.load_begin, place.before_end, before);
    const bool touched = place.enciphers && offset + 16 > place.cipher_begin && offset < place.cipher_end;
    if (__any_sync(every_lane, touched)) {
      const uint4 stream = device::bytes_and(keystream(p, offset, touched),
                                             device::byte_mask(place.cipher_begin - offset, place.cipher_end - offset));
      if (touched) bytes = device::bytes_xor(bytes, stream);
    }
    if constexpr (sums) after = add_words(bytes, offset, place.load_begin, place.after_end, after);
    std::uint32_t* const at = &memory_.row[p][(kept + offset % line) / 4];
    at[0] = bytes.x;
    at[1] = bytes.y;
    at[2] = bytes.z;
    at[3] = bytes.w;
    if (offset >= place.tag_units) {
      keep_tag_unit(p, offset - place.tag_units, bytes);
    } else if (touched) {
      store(place, offset, bytes, reinterpret_cast<const std::uint8_t*>(at));
    }
    if (place.spill != 0 && offset + 16 > place.load_begin && offset < place.load_end)
      *reinterpret_cast<uint4*>(place.spill + static_cast<unsigned>(offset)) = bytes;
  }

  __device__ __forceinline__ void keep_tag_unit(unsigned p, int at, uint4 bytes) {
    if (at < tag_units_bytes) *reinterpret_cast<uint4*>(&memory_.tag_units[p][at / 4]) = bytes;
  }

  // What the unit's bytes are enciphered with: the end of one block and the beginning of the next.
  __device__ __forceinline__ uint4 keystream(unsigned p, int offset, bool touched) {
    const Place& place = memory_.place[p];
    const int skew = place.cipher_begin % 16;
    const int ahead = offset + skew - place.cipher_begin;
    const bool first = lane_ % 8 == 0;
    uint4 before = memory_.keystream[p];
    uint4 now = make_uint4(0, 0, 0, 0);
    if (touched && ahead >= 0 && offset + skew < place.cipher_end) {
      const auto count = static_cast<std::uint32_t>(ahead / 16) + (place.gcm ? 2 : 0);
      now = aes_encipher(aes_, memory_.keys[p], place.rounds, counter_block(memory_.counter[p], count));
    }
    const uint4 left = make_uint4(__shfl_up_sync(every_lane, now.x, 1, 8), __shfl_up_sync(every_lane, now.y, 1, 8),
                                  __shfl_up_sync(every_lane, now.z, 1, 8), __shfl_up_sync(every_lane, now.w, 1, 8));
    if (!first) before = left;
    __syncwarp();
    if (lane_ % 8 == 7) memory_.keystream[p] = now;
    return join_blocks(before, now, static_cast<unsigned>(skew));
  }

  // `in_row`: the same bytes in shared memory.
  static __device__ __forceinline__ void store(const Place& place, int offset, uint4 bytes,
                                               const std::uint8_t* in_row) {
    const std::uint64_t to = place.target + static_cast<unsigned>(offset);
    if (offset >= place.whole_begin && offset + 16 <= place.whole_end) {
      __stcs(reinterpret_cast<uint4*>(to), bytes);
      return;
    }
    const int begin = place.cipher_begin > offset ? place.cipher_begin - offset : 0;
    const int end = place.cipher_end < offset + 16 ? place.cipher_end - offset : 16;
    store_bytes(to + static_cast<unsigned>(begin), in_row + begin, end - begin);
  }

  __device__ uint4 power(const Key* key, int exponent) const {
    return __ldcg(reinterpret_cast<const uint4*>(key->power[exponent - 1]));
  }

  // Of the lane's packet, all blocks that are there.
  __device__ void hash_additional(Packet& packet, int step) {
    if (!packet.there || !packet.gcm) return;
    while (packet.additional < packet.additional_blocks()) {
      const int from = 16 * packet.additional;
      const int end = from + 16 < packet.clear ? from + 16 : packet.clear;
      if (packet.begin + end > (step + 1) * line) return;
      FieldElement x = field_element(memory_.hash[lane_]);
      SLUICE_UNROLL
      for (int w = 0; w < 4; ++w) {
        const int there = packet.clear - from - 4 * w;
        const int at = kept + packet.begin + from + 4 * w - step * line;
        const std::uint32_t word = there > 0 ? __byte_perm(row_word(memory_.row[lane_], at), 0, 0x0123) : 0;
        x.word[3 - w] ^= with_tail(word, there, packet.suffix);
      }
      const FieldElement h = field_element(power(memory_.place[lane_].key, 1));
      memory_.hash[lane_] = field_bytes(field_product(x, h));
      ++packet.additional;
    }
  }

  // Of packet p, the blocks that end in this step, one for each of eight lanes: all lanes together. What is hashed so
  // far goes into the first of them; each is multiplied by H once for itself and once for each behind it.
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
    if (i == 0 && those != 0) memory_.hash[p] = field_bytes(product);
    __syncwarp();
  }

  // Of the lane's packet, the two blocks at most that end in this step.
  __device__ void hash_by_sha1(Packet& packet, int step) {
    if (!packet.there || packet.gcm) return;
    const int into = (packet.begin + kept - 1) % kept + 1;  // a row, 1 to 64: where the first of them begins
    const std::uint32_t* const row = memory_.row[lane_];
    SLUICE_ROLLED
    for (int half = 0; half < 2; ++half) {
      const int from = step * line + 64 * half + into - kept - packet.begin;
      if (from < 0 || from >= 64 * packet.sha_blocks()) continue;
      const int at = 64 * half + into;
      std::uint32_t w[16], left = row[at / 4];
      SLUICE_UNROLL
      for (int i = 0; i < 16; ++i) {
        const std::uint32_t right = row[at / 4 + i + 1];
        w[i] = __byte_perm(__funnelshift_r(left, right, at % 4 * 8), 0, 0x0123);
        left = right;
      }
      if (from + 64 > packet.authenticated()) end_message(packet, from, w);
      sha1_block(packet.sha, w);
    }
  }

  // Suffix, a set bit, and the length with that of the block of the key.
  static __device__ void end_message(const Packet& packet, int from, std::uint32_t (&w)[16]) {
    const std::uint64_t tail = packet.suffix | std::uint64_t{0x80} << (packet.suffix_length == 0 ? 56 : 24);
    SLUICE_UNROLL
    for (int i = 0; i < 16; ++i) w[i] = with_tail(w[i], packet.authenticated() - from - 4 * i, tail);
    if (from / 64 == packet.sha_blocks() - 1)
      w[15] = static_cast<std::uint32_t>(64 + packet.authenticated() + packet.suffix_length) * 8;
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

  struct Tag {
    std::uint32_t word[tag_bytes / 4];  // as they lie in memory
  };

  __device__ Tag sha1_tag(const Packet& packet) const {
    const auto* const outer = memory_.place[lane_].key->hmac.outer.word32;
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
    Tag tag;
    SLUICE_UNROLL
    for (int i = 0; i < 5; ++i) tag.word[i] = __byte_perm(sha.word[i], 0, 0x0123);
    return tag;
  }

  __device__ Tag gcm_tag(const Packet& packet) const {
    const Place& place = memory_.place[lane_];
    FieldElement x = field_element(memory_.hash[lane_]);
    x.word[2] ^= static_cast<std::uint32_t>(packet.clear + packet.suffix_length) * 8;
    x.word[0] ^= static_cast<std::uint32_t>(packet.text) * 8;
    const uint4 hash = field_bytes(field_product(x, field_element(power(place.key, 1))));
    const uint4 mask = aes_encipher(aes_, memory_.keys[lane_], place.rounds, counter_block(memory_.counter[lane_], 1));
    return {{hash.x ^ mask.x, hash.y ^ mask.y, hash.z ^ mask.z, hash.w ^ mask.w, 0}};
  }

  // Tags and verdicts; what is left to be deciphered.
  __device__ void finish(unsigned first, const Packet& packet) {
    bool done = false;
    Place& place = memory_.place[lane_];
    if (packet.there) {
      const Tag tag = packet.gcm ? gcm_tag(packet) : sha1_tag(packet);
      done = packet.opens ? same(tag, packet.tag_length) : true;
      if (!packet.opens) {
        store_tag(place, packet, tag);
        if constexpr (sums) memory_.after[lane_] += tag_words(tag, packet);
      }
    }
    if (lane_ < count_) work_.verdicts[first + lane_] = done ? Verdict::done : Verdict::tag_mismatch;
    place.enciphers = packet.opens && done;
    place.source = place.spill != 0 ? place.spill : place.source;
    place.spill = 0;
    place.load_begin = place.cipher_begin;
    place.load_end = place.enciphers ? place.cipher_end : 0;
    place.before_end = 0;
    place.after_end = place.load_end;
  }

  __device__ void store_tag(const Place& place, const Packet& packet, const Tag& tag) {
    auto* const units = reinterpret_cast<std::uint8_t*>(memory_.tag_units[lane_]);
    const bool whole = place.tag_units != INT_MAX;
    const int into = whole ? packet.tag_begin - place.tag_units : 0;
    SLUICE_UNROLL
    for (int i = 0; i < tag_bytes; ++i)
      if (i < packet.tag_length) units[into + i] = static_cast<std::uint8_t>(tag.word[i / 4] >> i % 4 * 8);
    if (!whole) {
      store_bytes(place.target + static_cast<unsigned>(packet.tag_begin), units, packet.tag_length);
      return;
    }
    SLUICE_UNROLL
    for (int at = 0; at < tag_units_bytes; at += unit_bytes) {
      if (at >= into + packet.tag_length) continue;
      __stcs(reinterpret_cast<uint4*>(place.target + static_cast<unsigned>(place.tag_units + at)),
             *reinterpret_cast<const uint4*>(units + at));
    }
  }

  static __device__ std::uint32_t tag_words(const Tag& tag, const Packet& packet) {
    std::uint32_t sum = 0;
    SLUICE_UNROLL
    for (int i = 0; i < 5; ++i) sum = add_words(tag.word[i] & device::word_mask(0, packet.tag_length - 4 * i), sum);
    return fold_words(sum, packet.tag_begin);
  }

  __device__ void write_sums(unsigned first, const Packet& packet) {
    if (lane_ >= count_) return;
    const std::uint32_t before = fold_words(memory_.before[lane_], packet.begin);
    const std::uint32_t after = fold_words(memory_.after[lane_], packet.begin);
    *reinterpret_cast<std::uint32_t*>(work_.sums + first + lane_) = before | after << 16;
  }

  // Every byte is looked at, whatever the others are.
  __device__ bool same(const Tag& tag, int length) const {
    std::uint32_t differs = 0;
    SLUICE_UNROLL
    for (int i = 0; i < 5; ++i)
      differs |= (tag.word[i] ^ memory_.tag_units[lane_][i]) & device::word_mask(0, length - 4 * i);
    return differs == 0;
  }

  const GpuWork& work_;
  const std::uint32_t* const aes_;
  WarpMemory& memory_;
  const unsigned lane_;
  unsigned count_ = 0;
};

}  // namespace sluice::crypto
