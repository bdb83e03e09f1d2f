// Does jobs on a GPU: the same bytes, tags and verdicts as Cpu, for batches of both directions, all that gpu_side() can
// do, any keys and lengths mixed. A copy of the KeyTable lies in device memory and follows it slot by slot.
//
// A warp does 32 jobs at a time, side by side: those of one algorithm and length fastest, others one algorithm after
// the other, all as long as the longest. An order (device/warp_schedule.h) says which jobs go together; without one
// they are taken as they come. Of a batch with an order, all packets are brought up before the first is begun: there
// are no pieces.
//
// AES-CBC seals a packet's blocks one after the other, so a batch takes as long as its longest packet, however few
// packets there are. All else is parallel within a packet but for the HMAC.
//
// Ways of a packet, as settled for each batch (GpuPath):
//   copy    up and down by the copy engine, as 2-D copies of runs of packets (device/frame_copy.h), a kernel in device
//           memory in between: the only way that fills the link both ways
//   direct  in place: a kernel reads and writes packets in host memory: batches that lie scattered, or are small
// Large batches travel in pieces, so that one piece comes down while the next goes up; small ones that are run together
// and stand behind one another in memory travel as one copy, for the copy engine pauses some 6 us between two.
//
// What is written in host memory besides what job.h says. Bytes from `data` to the end of the tag are written back as
// they were read, and so are those behind it to the end of the 16-byte unit that the tag ends in (for the link carries
// a whole unit in one write, where its bytes would take five). So are, on the way `copy` those up to the length of the
// packet's run's longest one, where the next packet of the run does not begin before that. So nobody else may write to
// a batch's packets, nor to what follows in their buffers, while it is under way. Packets that do not lie in buffers of
// their own must be run in place without GpuCryptoOptions::own_buffers: then nothing behind them is written.
//
// A packet that is opened is read once and hashed; what is enciphered stays in device memory until the tag has been
// found right, and only then is it deciphered. So plain text that is not authentic exists nowhere, costs no AES, and
// the frame of a tag_mismatch is as it was. A job whose slot is empty, or not yet on the GPU, is not done either:
// tag_mismatch, whether it seals or opens, and nothing is written.
//
// Threads: create() and destruction on the control thread; all else on the one thread that drives the GPU's streams.
// The KeyTable may change meanwhile, as it says. Errors: a CUDA error, or the GPU is lost; then a batch that was under
// way must be dropped, since its packets may be in any state (job.h).
//
// Secrets: a released slot is zeros on the GPU after the next sync() of it. The copy is wiped at destruction, keys in
// shared memory at the end of each block, and records on their way before their memory is used again. Table lookups of
// AES have no bank conflicts and so take the same time whatever the key; GHASH has none; tags are compared whole.
//
// Two kernels: one for SRTP's algorithms alone, and one for all, which takes more registers and shared memory. The
// first does a batch while the table has no other keys; in an order the second does.
//
// Cost: run() one launch for each piece, and two copies on the way `copy`: about 2 us of CPU time each, and, unless the
// batch comes with its runs, what reading the jobs costs. sync() a load when nothing has changed; else 512 B for each
// changed slot, in one launch. Device memory: 448 B for each slot, and for each stream max_packets times the longest
// packet, rounded up to lines of 128 B. docs/srtp.md has the budget of a packet.
//
// Sums are made of every packet of a batch that has an array of them, from registers that hold its bytes anyhow. That
// is eight instructions of a lane for 16 bytes, masks at a packet's ends, and 4 B more of each that come down.
//
// Sources: FIPS-197, by the T-table of the AES proposal (5.2.1; one of 1 KB, a copy in each bank of shared memory);
// FIPS 180-4; SP 800-38A, C; RFC 3602, 3686, 4106, 4868; SP 800-38D, carry-less products by integer ones with holes, as
// in BearSSL's ghash_ctmul.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "crypto/job.h"
#include "crypto/key_table.h"
#include "device/frame_copy.h"
#include "device/gpu.h"

namespace sluice::crypto {

enum class GpuPath {
  automatic,  // copy for large runs of packets of about one size, direct otherwise
  copy,       // direct only where there are more than 64 runs
  direct,
};

struct GpuCryptoOptions {
  std::uint32_t max_packets = 16384;      // of a batch
  std::uint32_t max_packet_bytes = 2048;  // from `data` to the end of the tag
  GpuPath path = GpuPath::automatic;
  bool own_buffers = true;  // 15 bytes behind each packet are nobody else's; must be so for any way but `direct`
  std::uint64_t piece_bytes = 8U << 20;
  std::uint32_t together = 1;             // batches that run() has staging for at once
  std::size_t max_sync_bytes = 1U << 20;  // that one sync() moves
};

// In pinned memory, which the GPU reads and writes until the batch is done: `jobs`, `verdicts` and, where any job asks
// for them, `sums`, of `count`; the packets of the jobs; `order` and `times`.
struct GpuBatch {
  const Job* jobs = nullptr;
  Verdict* verdicts = nullptr;
  std::uint32_t count = 0;
  Sums* sums = nullptr;  // null: no job asks
  // Of the packets, each from `data` to the end of its tag or a little further, where whoever made the jobs has noted
  // it. Else, and where it is not complete, run() reads all jobs: some 25 ns for each that another core has written.
  const device::RunList* runs = nullptr;
  // Places, of which each warp takes 32, hold the jobs' indices, each once; device::no_item where a warp has fewer.
  // Empty: jobs as they come.
  std::span<const std::uint16_t> order = {};
  bool makes_order = false;  // and there is none: the GPU makes one first, by what a job is and how long
  // Of an order, the GPU's own too, for each 32 places, clocks that the warp took, what it waited for included: to
  // learn from (device/warp_times.h). Null: nobody asks.
  std::uint32_t* times = nullptr;
  bool opens = true;  // false: no job opens; spares a launch the table by which CBC is deciphered. A job of CBC that
                      // opens nevertheless is tag_mismatch
};

class GpuCrypto {
 public:
  // Uploads the keys that are installed and follows the table from then on. The gpu and the table must outlive the
  // GpuCrypto, and the table must not be moved meanwhile.
  static Expected<std::unique_ptr<GpuCrypto>> create(device::Gpu& gpu, KeyTable& keys,
                                                     const GpuCryptoOptions& options = {});
  virtual ~GpuCrypto() = default;

  // Enqueues changes of keys, as many as max_sync_bytes hold; the rest waits for the next call, as all do while the GPU
  // has not yet read what the last two calls packed.
  virtual Expected<void> sync(device::GpuStream& stream) = 0;
  // All changes made so far have been enqueued: a batch that runs from now on, on any stream, finds them.
  virtual bool up_to_date() const = 0;

  // Enqueues the batches, with one verdict for each job when they are done, all of them at the same time. Fails where a
  // batch is larger than max_packets, or on a stream that is not the gpu's, or a packet is longer than
  // max_packet_bytes: the first of them then enqueues nothing. A stream's batches are done one after the other.
  virtual Expected<void> run(std::span<const GpuBatch> batches, device::GpuStream& stream) = 0;
  Expected<void> run(const GpuBatch& batch, device::GpuStream& stream) { return run({&batch, 1}, stream); }

  // Table and staging.
  virtual std::size_t device_bytes() const = 0;
};

}  // namespace sluice::crypto
