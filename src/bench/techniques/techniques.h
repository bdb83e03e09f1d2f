// Ways to run an Aho-Corasick automaton over a batch of packets of very different sizes on a GPU, after Blink (Lin and
// Wang, "Efficient low-latency packet processing using On-GPU Thread-Data Remapping", JPDC 2019), for comparison with
// the filter that Sluice uses (automaton/gram_scan.cuh). Each gives for each packet the number of positions at which at
// least one pattern ends.
//
//   base           a thread for each packet, eight bytes at a time (section 2.2)
//   prefetch       the first warp of a block reads its packets through shared memory (MP, 3.3)
//   remap_each     after each eight bytes the block's threads exchange packets, so that those that are at their
//                  packet's end are the last ones (per-iteration remapping, 2.3)
//   cites_naive    the same, but only after a thread has said that it is at its end (CITES without a threshold, 3.2)
//   cites          and no more once as few threads are left as the threshold says (CITES)
//   cites_prefetch cites with prefetch
//   sorted         base, over packets that the CPU has sorted by size (GASPP's way)
//   segments       a thread for each 64 bytes of a packet, which first reads the bytes in front of them that a pattern
//                  may begin in: no loop differs in length
//   segments_hot   segments, with the states nearest the root in shared memory
//   segments_staged
//                  segments, whose 64 bytes a thread brings to shared memory first, all of them under way at once
//   segments_pairs segments_staged, by two bytes from the states nearest the root (two_byte_table.h); by one from all
//                  others, and where one is left
//
// What pairs are expected to gain: each read of the automaton waits for the one before it, so the fewer, the sooner a
// piece is done. On the payloads of `bench match` (heavy tail), counted on a CPU, a thread makes 0.64 reads for each
// byte instead of one, and the slowest of a warp's, for which the others wait, 0.72 (23,000 patterns) and 0.79 (the
// community rules). That is up to 1.3 to 1.4 times segments_staged; 1.9 where all states that traffic visits are hot
// (random bytes, community rules), and never more than 2. What may eat it: a hot state's pairs are 200 KB, so what is
// read of them is in second-level cache more often than a row of single bytes. Lanes at paces of their own read
// different lines; and a byte costs two or more reads of shared memory. What the staging alone does is seen in
// segments_staged.
//
// The batch lies in device memory, or in pinned host memory, from where the kernels read it over the link; packet
// behind packet, each at a multiple of 16 bytes. Where packets lie and how long they are, and what comes out, is in
// device memory either way.
//
// Threads: one. Errors: a CUDA error; so are patterns of more than some 800 bytes where pieces are staged, for which
// there is not enough shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/techniques/dfa.h"
#include "bench/techniques/gathered.h"
#include "bench/techniques/loop_count.h"
#include "bench/techniques/two_byte_table.h"
#include "device/gpu.h"
#include "match/automaton/gpu_matcher.h"

namespace sluice::match {

enum class Technique {
  base,
  prefetch,
  remap_each,
  cites_naive,
  cites,
  cites_prefetch,
  sorted,
  segments,
  segments_hot,
  segments_staged,
  segments_pairs,
};
inline constexpr Technique techniques[] = {
    Technique::base,         Technique::prefetch,        Technique::remap_each,    Technique::cites_naive,
    Technique::cites,        Technique::cites_prefetch,  Technique::sorted,        Technique::segments,
    Technique::segments_hot, Technique::segments_staged, Technique::segments_pairs};
const char* name_of(Technique technique);

struct TechniqueRun {
  std::vector<std::uint32_t> ends;  // per packet
  double microseconds = 0;          // of the kernel, the least of the rounds
  double prepare_microseconds = 0;  // of what the CPU does for each batch beforehand (sorted)
  // Over a packet's bytes. An iteration is of eight of them, and a single step where pieces are staged, since threads
  // take different numbers of those.
  LoopCount loop;
};

// Of what reports keys, the scan that Sluice uses or another, per packet as MatchBatch says it.
struct FilterRun {
  std::vector<std::uint32_t> found, keys;  // keys: max_hits a packet
  double microseconds = 0;                 // of the kernel, the least of the rounds
  SearchLoops loops;                       // of the search
};

enum class PacketPlace { device, host };

class Techniques {
 public:
  // Uploads the automaton, its table of pairs, and the packets to their place. `dfa` and `packets` must outlive it.
  static Expected<std::unique_ptr<Techniques>> create(device::Gpu& gpu, const Dfa& dfa, const TwoByteTable& pairs,
                                                      std::span<const std::string> packets,
                                                      PacketPlace place = PacketPlace::device);
  virtual ~Techniques() = default;
  // Runs it `rounds` times for the time, and once more to count.
  virtual Expected<TechniqueRun> run(Technique technique, unsigned rounds) = 0;
  // The same, with the same packets in the scan that Sluice uses; whole where the matcher is.
  virtual Expected<FilterRun> run_filter(GpuMatcher& matcher, unsigned rounds) = 0;
  // The same, brought to device memory first (gathered.h); the time is of both kernels.
  virtual Expected<FilterRun> run_gathered(GatheredMatcher& matcher, unsigned rounds) = 0;
};

}  // namespace sluice::match
