// A warp does the jobs of up to 32 packets. It walks over them together, a line of 128 bytes of each packet in a step:
// eight lanes share a line, four packets a load, the next step's lines are under way. What is sealed in counter mode is
// enciphered between load and store, in registers; the line then stands in shared memory as it is authenticated. There
// each lane seals a packet of its own by CBC (gpu_cbc.cuh) and hashes it (gpu_hmac.cuh), and eight lanes hash a packet
// by GHASH, each with a power of H. What packets do not need, their warp does not do.
#pragma once

#include <cstdint>

#include "crypto/aes.cuh"
#include "crypto/gpu_authenticate.cuh"
#include "crypto/gpu_bytes.cuh"
#include "crypto/gpu_cbc.cuh"
#include "crypto/gpu_work.cuh"
#include "crypto/job.h"
#include "crypto/key.h"
#include "device/frame_read.cuh"
#include "device/launch.h"
#include "device/warp_schedule.h"

namespace sluice::crypto {

__device__ __forceinline__ int warp_max(int value) {
  for (int by = 16; by > 0; by /= 2) {
    const int other = __shfl_xor_sync(every_lane, value, by);
    value = other > value ? other : value;
  }
  return value;
}

// `sums`: work.sums is written. Else it costs nothing.
template <typename For, bool sums>
class JobWarp {
 public:
  // `aes`: the table, and where GpuWork says so the inverse's behind it.
  __device__ JobWarp(const GpuWork& work, const std::uint32_t* aes, WarpMemory<For>& memory)
      : work_(work), aes_(aes), memory_(memory), authenticator_(memory, aes), lane_(threadIdx.x % 32) {}

  // Jobs [first, first + count), or those of an order's places; at most 32.
  __device__ void run(unsigned first, unsigned count) {
    job_ = lane_ < count ? first + lane_ : no_job;
    count_ = count;
    if constexpr (For::all) {
      if (work_.order != nullptr) look_up(first, count);
      if (count_ == 0) return;
    }
    Packet packet;
    load_job(packet);
    __syncwarp();
    load_round_keys();
    __syncwarp();
    walk<true>(packet);
    __syncwarp();  // without a step lanes have looked at others' places all the same
    finish(packet);
    __syncwarp();
    if (__any_sync(every_lane, memory_.place[lane_].enciphers)) walk<false>(packet);
    __syncwarp();
    if constexpr (sums) write_sums(packet);
  }

  // Nothing secret stays in shared memory.
  __device__ void wipe() {
    auto* const words = reinterpret_cast<std::uint32_t*>(&memory_);
    for (unsigned i = lane_; i < sizeof memory_ / 4; i += 32) words[i] = 0;
  }

 private:
  static constexpr int kept = For::kept;
  static constexpr std::uint32_t no_job = ~0u;

  // Places without a job are the last ones.
  __device__ void look_up(unsigned first, unsigned count) {
    const std::uint16_t job = lane_ < count ? __ldcs(work_.order + first + lane_) : device::no_item;
    job_ = job != device::no_item ? job : no_job;
    count_ = static_cast<unsigned>(__popc(__ballot_sync(every_lane, job_ != no_job)));
  }

  __device__ void load_job(Packet& packet) {
    Place place = {};
    if (job_ != no_job) {
      const auto* const halves = reinterpret_cast<const uint4*>(work_.jobs + job_);
      const uint4 low = __ldcs(halves), high = __ldcs(halves + 1);
      if (low.z < work_.slots) take(low, high, place, packet);
    }
    memory_.place[lane_] = place;
    memory_.before[lane_] = memory_.after[lane_] = 0;
  }

  __device__ std::uint64_t staged_place(std::uint32_t job) const {
    device::StagedFrames staged = work_.staged;
    if constexpr (For::all) {
      std::uint32_t first = 0;
      for (std::uint32_t r = 0; r < work_.more_runs && job >= work_.more_run[r].first; ++r) {
        staged = work_.more_run[r].staged;
        first = work_.more_run[r].first;
      }
      job -= first;
    }
    return staged.address + static_cast<std::uint64_t>(staged.step * static_cast<std::int64_t>(job));
  }

  // Of an empty slot, and of what this kernel cannot do, nothing.
  __device__ void take(uint4 low, uint4 high, Place& place, Packet& packet) {
    const Key& slot = work_.keys[low.z];
    const auto* const words = reinterpret_cast<const std::uint32_t*>(&slot);
    const std::uint32_t kind = __ldcg(words + offsetof(Key, cipher) / 4);
    const auto cipher = static_cast<Cipher>(kind & 0xFF);
    if (cipher == Cipher::none) return;
    static_assert(offsetof(Key, cipher) == 0 && offsetof(Key, hash) == 1 && offsetof(Key, rounds) == 2);
    const std::uint64_t host = std::uint64_t{low.y} << 32 | low.x;
    const bool staged = work_.staged.step != 0;
    const std::uint64_t data = staged ? staged_place(job_) : host;
    const unsigned flags = high.w >> 24;

    packet.gcm = cipher == Cipher::aes_gcm || (For::all && cipher == Cipher::aes_gcm_esp);
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
    place.gcm = packet.gcm;
    place.enciphers = !packet.opens;
    if constexpr (For::all) {
      if (!take_scheme(kind, words, place, packet)) return;
    } else {
      SLUICE_UNROLL
      for (unsigned w = 0; w < 5; ++w) packet.sha.word[w] = __ldcg(words + offsetof(Key, hmac.inner) / 4 + w);
    }
    packet.there = true;

    const std::uint64_t origin = data - static_cast<unsigned>(packet.begin);
    place.source = place.target = origin;
    place.key = &slot;
    place.rounds = static_cast<std::uint8_t>(kind >> 16);
    place.load_begin = packet.begin;
    const int clear_end = packet.begin + packet.authenticated();
    place.load_end = packet.opens ? packet.tag_begin + packet.tag_length : sums ? packet.tag_begin : clear_end;
    place.before_end = packet.opens ? place.load_end : clear_end;
    const bool stays = For::all && !packet.all.enciphers;
    place.after_end = !packet.opens ? packet.tag_begin : stays ? clear_end : packet.text_begin();
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
    if (packet.opens && !staged) place.spill = reinterpret_cast<std::uint64_t>(work_.scratch) + job_ * work_.pitch;

    const uint4 salt = __ldcg(reinterpret_cast<const uint4*>(slot.salt_block));
    memory_.counter[lane_] =
        For::all && packet.all.iv != 0 ? make_uint4(salt.x, 0, 0, 0) : counter_of(salt, high, packet.gcm);
    memory_.hash[lane_] = memory_.keystream[lane_] = make_uint4(0, 0, 0, 0);
  }

  // What the key and the direction say of how it is done. False: it cannot be done here.
  __device__ bool take_scheme(std::uint32_t kind, const std::uint32_t* words, Place& place, Packet& packet) {
    const auto cipher = static_cast<Cipher>(kind & 0xFF);
    Scheme& scheme = packet.all;
    scheme.hash = static_cast<Hash>(kind >> 8 & 0xFF);
    scheme.enciphers = cipher != Cipher::null;
    place.enciphers = scheme.enciphers && !packet.opens;
    switch (cipher) {
      case Cipher::null:
      case Cipher::aes_ctr:
        break;
      case Cipher::aes_gcm:
        place.mode = Mode::counter_2;
        break;
      case Cipher::aes_ctr_esp:
        place.mode = Mode::counter_1;
        scheme.iv = 8;
        break;
      case Cipher::aes_gcm_esp:
        place.mode = Mode::counter_2;
        scheme.iv = 8;
        scheme.inserts = true;
        break;
      case Cipher::aes_cbc:
        place.mode = Mode::cbc;
        if (packet.opens && !work_.has_inverse) return false;
        if (packet.opens) {
          scheme.iv = aes_block;
          break;
        }
        // The IV is made by enciphering what is there.
        packet.clear -= static_cast<int>(aes_block);
        packet.text += static_cast<int>(aes_block);
        scheme.lag = pending_bytes(packet.text_begin());
        break;
      default:
        return false;
    }
    SLUICE_UNROLL
    for (unsigned w = 0; w < 16; ++w) scheme.state.word[w] = __ldcg(words + offsetof(Key, hmac.inner) / 4 + w);
    return true;
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
    const int own = hashes ? authenticator_.steps_of(packet) : mine.enciphers ? (mine.cipher_end + line - 1) / line : 0;
    const int steps = warp_max(own);
    const bool any_gcm = hashes && __any_sync(every_lane, packet.gcm);
    const bool any_chain = For::all && __any_sync(every_lane, mine.chains());
    const int unit = static_cast<int>(lane_ % 8) * 16;
    uint4 ahead[8];
    std::uint32_t before[8] = {}, after[8] = {};
    SLUICE_UNROLL
    for (unsigned r = 0; r < 8; ++r)
      ahead[r] = 4 * r < count_ ? fetch(memory_.place[4 * r + lane_ / 8], unit) : uint4{};
    SLUICE_ROLLED
    for (int step = 0; step < steps; ++step) {
      if constexpr (For::all && hashes) {
        const int iv_end = packet.text_begin() - step * line;
        const bool ends = packet.there && packet.all.iv != 0 && iv_end > 0 && iv_end <= line;
        if (__any_sync(every_lane, ends)) take_ivs(packet, ends, iv_end, ahead);
      }
      SLUICE_UNROLL
      for (unsigned r = 0; r < 8; ++r) {
        if (4 * r >= count_) continue;
        const uint4 bytes = ahead[r];
        ahead[r] = fetch(memory_.place[4 * r + lane_ / 8], (step + 1) * line + unit);
        pass(4 * r + lane_ / 8, step * line + unit, bytes, before[r], after[r]);
      }
      __syncwarp();
      if (any_chain) {
        if constexpr (hashes) {
          seal_chain(memory_, aes_, lane_, step);
        } else {
          SLUICE_ROLLED
          for (unsigned r = 0; 4 * r < count_; ++r)
            open_chain(memory_, aes_ + aes_table_bytes / 4, 4 * r + lane_ / 8, lane_, step);
        }
        __syncwarp();
        if (step != 0) store_lines((step - 1) * line + unit, after);
      }
      if constexpr (hashes) {
        hash_line(packet, step, any_gcm);
      } else if (!any_chain) {
        continue;
      }
      __syncwarp();
      std::uint32_t* const row = memory_.row[lane_];
      for (int w = 0; w < kept / 4; ++w) row[w] = row[w + line / 4];
      __syncwarp();
    }
    if (any_chain) {
      store_lines((steps - 1) * line + unit, after);
      __syncwarp();
    }
    if constexpr (sums) add_up(before, after);
  }

  __device__ __forceinline__ void hash_line(Packet& packet, int step, bool any_gcm) {
    if (any_gcm) {
      authenticator_.hash_additional(packet, step);
      __syncwarp();
      SLUICE_ROLLED
      for (unsigned r = 0; 4 * r < count_; ++r) authenticator_.hash_text(4 * r + lane_ / 8, step);
    }
    authenticator_.hash_messages(packet, step);
    authenticator_.take_tag(packet, step);
  }

  // Of packets whose IV `ends` in this step, `iv_end` bytes behind the line's begin: before text is enciphered by it.
  __device__ void take_ivs(const Packet& packet, bool ends, int iv_end, const uint4 (&ahead)[8]) {
    SLUICE_UNROLL
    for (unsigned r = 0; r < 8; ++r)
      if (4 * r < count_) put_unit(4 * r + lane_ / 8, static_cast<int>(lane_ % 8) * 16, ahead[r]);
    __syncwarp();
    if (ends) {
      const uint4 iv = row_block(memory_.row[lane_], kept + iv_end - packet.all.iv);
      if (packet.all.iv == aes_block) {
        memory_.keystream[lane_] = iv;
      } else {
        memory_.counter[lane_].y = iv.x;
        memory_.counter[lane_].z = iv.y;
      }
    }
    __syncwarp();
  }

  __device__ __forceinline__ std::uint32_t* put_unit(unsigned p, int in_line, uint4 bytes) {
    std::uint32_t* const at = &memory_.row[p][(kept + in_line) / 4];
    at[0] = bytes.x;
    at[1] = bytes.y;
    at[2] = bytes.z;
    at[3] = bytes.w;
    return at;
  }

  // Of packets that chain, the line that went before, which is at the row's begin now: unit `offset` of each.
  __device__ void store_lines(int offset, std::uint32_t (&after)[8]) {
    SLUICE_UNROLL
    for (unsigned r = 0; r < 8; ++r) {
      const unsigned p = 4 * r + lane_ / 8;
      const Place& place = memory_.place[p];
      if (4 * r >= count_ || !place.chains()) continue;
      const std::uint32_t* const at = &memory_.row[p][(kept - line + offset % line) / 4];
      const uint4 bytes = make_uint4(at[0], at[1], at[2], at[3]);
      if constexpr (sums) after[r] = add_words(bytes, offset, place.load_begin, place.after_end, after[r]);
      if (offset + 16 <= place.cipher_begin || offset >= place.cipher_end) continue;
      if (offset >= place.tag_units) {
        keep_tag_unit(p, offset - place.tag_units, bytes);
      } else {
        store(place, offset, bytes, reinterpret_cast<const std::uint8_t*>(at));
      }
    }
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
    const bool chains = For::all && place.chains();
    const bool touched = place.enciphers && !chains && offset + 16 > place.cipher_begin && offset < place.cipher_end;
    if (__any_sync(every_lane, touched)) {
      const uint4 stream = device::bytes_and(keystream(p, offset, touched),
                                             device::byte_mask(place.cipher_begin - offset, place.cipher_end - offset));
      if (touched) bytes = device::bytes_xor(bytes, stream);
    }
    if constexpr (sums) {
      if (!chains) after = add_words(bytes, offset, place.load_begin, place.after_end, after);
    }
    const std::uint32_t* const at = put_unit(p, offset % line, bytes);
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
      const auto count = static_cast<std::uint32_t>(ahead / 16) + first_counter(place);
      now = aes_encipher(aes_, memory_.keys[p], place.rounds, counter_block(memory_.counter[p], count));
    }
    const uint4 left = make_uint4(__shfl_up_sync(every_lane, now.x, 1, 8), __shfl_up_sync(every_lane, now.y, 1, 8),
                                  __shfl_up_sync(every_lane, now.z, 1, 8), __shfl_up_sync(every_lane, now.w, 1, 8));
    if (!first) before = left;
    __syncwarp();
    if (lane_ % 8 == 7 && (!For::all || place.mode != Mode::cbc)) memory_.keystream[p] = now;
    return join_blocks(before, now, static_cast<unsigned>(skew));
  }

  static __device__ std::uint32_t first_counter(const Place& place) {
    return For::all ? static_cast<std::uint32_t>(place.mode) : place.gcm ? 2 : 0;
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

  // Tags and verdicts; what is left to be deciphered.
  __device__ void finish(Packet& packet) {
    bool done = false;
    Place& place = memory_.place[lane_];
    if (packet.there) {
      const Tag<For> tag = authenticator_.tag(packet);
      done = packet.opens ? authenticator_.same(tag, packet.tag_length) : true;
      if (!packet.opens) {
        store_tag(place, packet, tag);
        if constexpr (sums) memory_.after[lane_] += tag_words(tag, packet);
      }
    }
    if (job_ != no_job) work_.verdicts[job_] = done ? Verdict::done : Verdict::tag_mismatch;
    place.enciphers = packet.opens && done && (!For::all || packet.all.enciphers);
    place.source = place.spill != 0 ? place.spill : place.source;
    place.spill = 0;
    place.load_begin = place.cipher_begin;
    place.load_end = place.enciphers ? place.cipher_end : 0;
    place.before_end = 0;
    place.after_end = place.load_end;
  }

  __device__ void store_tag(const Place& place, const Packet& packet, const Tag<For>& tag) {
    auto* const units = reinterpret_cast<std::uint8_t*>(memory_.tag_units[lane_]);
    const bool whole = place.tag_units != INT_MAX;
    const int into = whole ? packet.tag_begin - place.tag_units : 0;
    SLUICE_UNROLL
    for (int i = 0; i < 4 * For::tag_words; ++i)
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

  static __device__ std::uint32_t tag_words(const Tag<For>& tag, const Packet& packet) {
    std::uint32_t sum = 0;
    SLUICE_UNROLL
    for (int i = 0; i < For::tag_words; ++i)
      sum = add_words(tag.word[i] & device::word_mask(0, packet.tag_length - 4 * i), sum);
    return fold_words(sum, packet.tag_begin);
  }

  __device__ void write_sums(const Packet& packet) {
    if (job_ == no_job) return;
    const std::uint32_t before = fold_words(memory_.before[lane_], packet.begin);
    const std::uint32_t after = fold_words(memory_.after[lane_], packet.begin);
    *reinterpret_cast<std::uint32_t*>(work_.sums + job_) = before | after << 16;
  }

  const GpuWork& work_;
  const std::uint32_t* const aes_;
  WarpMemory<For>& memory_;
  Authenticator<For> authenticator_;
  const unsigned lane_;
  std::uint32_t job_ = no_job;  // the lane's
  unsigned count_ = 0;
};

}  // namespace sluice::crypto
