// What a warp that does jobs (gpu_jobs.cuh) is given, and what it has of each packet in shared memory and in registers.
//
// Offsets of a packet are counted from its first line on. A row of shared memory holds the line of this step and the
// last `kept` bytes of those before, so that a block that ends in this step is all there. Rows are an odd number of
// words apart, so lanes that read the same word of different rows meet in no bank.
#pragma once

#include <climits>
#include <cstdint>

#include "crypto/gpu_hmac.cuh"
#include "crypto/job.h"
#include "crypto/key.h"
#include "crypto/sha1.cuh"
#include "device/frame_copy.h"
#include "device/frame_read.cuh"
#include "device/launch.h"

namespace sluice::crypto {

using device::every_lane;

inline constexpr int line = static_cast<int>(device::line_bytes);
inline constexpr unsigned key_words = sizeof Key::round_keys / 4;
inline constexpr int unit_bytes = 16;

// What a kernel can do. Each has shared memory and registers for no more than that.
//   ForMedia   SRTP's: AES in counter mode and GCM, HMAC-SHA1 of at most 20 bytes
//   ForAll     all ciphers and hashes of gpu_side(); orders of packets
struct ForMedia {
  static constexpr bool all = false;
  static constexpr int kept = 64;  // a block of SHA-1
  static constexpr int tag_words = 5;
};
struct ForAll {
  static constexpr bool all = true;
  static constexpr int kept = 144;  // a block of SHA-512 that waits for one of CBC
  static constexpr int tag_words = max_tag_length / 4;
};

inline constexpr int tag_units_bytes = (unit_bytes - 1 + max_tag_length + unit_bytes - 1) / unit_bytes * unit_bytes;

// Of a batch that lies in several runs, where the second and later ones are staged.
struct StagedRun {
  std::uint32_t first;  // packets from this one on
  device::StagedFrames staged;
};
inline constexpr unsigned most_staged_runs = device::RunList::max_runs;

struct GpuWork {
  const Job* jobs;
  Verdict* verdicts;
  Sums* sums;  // null: nobody asks
  const Key* keys;
  std::uint32_t slots;
  std::uint32_t count;          // jobs, or, in an order, places
  device::StagedFrames staged;  // where packets lie; step 0: in host memory
  std::byte* scratch;           // for those in host memory that are opened, `pitch` bytes each
  std::uint64_t pitch;
  bool whole_units;  // the unit that a packet ends in may be written to its end
  // From here on, ForAll.
  bool has_inverse;            // the table by which AES is deciphered is there
  const std::uint16_t* order;  // null: as they come
  std::uint32_t* times;        // null: nobody asks; clocks of the warp, for each 32 places
  std::uint32_t more_runs;
  StagedRun more_run[most_staged_runs - 1];
};

// How a packet's text is enciphered: in counter mode with this first counter, or by CBC.
enum class Mode : std::uint8_t { counter_0, counter_1, counter_2, cbc };

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
  Mode mode;

  // Blocks depend on one another: lines are stored when the next one has come.
  __device__ bool chains() const { return enciphers && mode == Mode::cbc; }
};

template <typename For>
struct alignas(16) WarpMemory {
  static constexpr int row_words = (For::kept + line) / 4 + 1;

  std::uint32_t keys[32][key_words];
  uint4 counter[32];    // as of job.h, the counter being 0
  uint4 keystream[32];  // the last block of the step before; of CBC, the last of the ciphertext
  uint4 hash[32];       // GHASH so far
  Place place[32];
  std::uint32_t row[32][row_words];
  // Of what is sealed, from Place::tag_units on; without these the tag that came, or is made.
  alignas(unit_bytes) std::uint32_t tag_units[32][tag_units_bytes / 4];
  std::uint32_t before[32], after[32];  // sums of 16-bit words, the first at offset 0
};

// What only ForAll has to know of a packet.
struct Scheme {
  Hash hash = Hash::none;
  int iv = 0;              // bytes at the end of the clear part that are read as the IV
  int lag = 0;             // bytes at a line's end that CBC enciphers in the next step only
  bool inserts = false;    // additional data without the IV, its suffix behind the first four bytes
  bool enciphers = false;  // it has a cipher
  MessageState state = {};
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
  Scheme all;

  __device__ int authenticated() const { return clear + text; }
  __device__ int additional_length() const { return clear - (all.inserts ? all.iv : 0) + suffix_length; }
  __device__ int additional_blocks() const { return (additional_length() + 15) / 16; }
  __device__ int text_blocks() const { return (text + 15) / 16; }
  __device__ int text_begin() const { return begin + clear; }
};

}  // namespace sluice::crypto
