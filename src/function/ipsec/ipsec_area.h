// What the element keeps of a batch in its own area of it, from admit() (in) or classify() (out) to apply(): jobs and,
// beside them, what their packets need to be finished.
//
// Jobs stand close together, in the order of frames; those that are kept from a device stand at the other end, the last
// frame's first, and are computed by the lane's core. A frame has a place: that of its job, or none.
//
// Threads: a batch is one thread's at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/job.h"
#include "device/frame_copy.h"
#include "engine/batch.h"
#include "engine/options.h"
#include "ipsec/ah.h"
#include "ipsec/outer_packet.h"

namespace sluice::ipsec {
struct Sa;
class View;
}  // namespace sluice::ipsec

namespace sluice::function {

struct IpsecArea {
  struct alignas(64) Header {
    std::uint64_t installs;  // keys that all devices have
    std::uint32_t jobs;      // at places [0, jobs)
    std::uint32_t kept;      // at [kept, capacity), the last frame's first: the core's alone
    bool kept_done;
    bool mixes_kinds;           // jobs of the device are of more than one algorithm,
    bool mixes_lengths;         // or of more than one length range
    std::uint32_t kind, range;  // of the first of them
    bool not_computed;          // null_result() has written the verdicts
    const ipsec::View* view;    // of the databases, which the batch holds
    device::RunList runs;       // of the device's jobs
  };
  // So many bytes for each frame of the smallest batch hold it.
  static constexpr std::uint32_t header_per_frame = 12;
  static_assert(sizeof(Header) <= header_per_frame * engine::batch_range.least);

  // What is to be known of a job until its packet is finished.
  struct Work {
    ipsec::Sa* sa;
    const ipsec::PacketFormat* format;
    std::uint64_t sequence;
    std::uint32_t frame;  // its index in the batch
    // In: the parts of ipsec::OuterView.
    std::uint32_t at, length;
    std::uint16_t named_at, udp_source;
    std::uint8_t family, tos;
    bool in_udp;
    bool needs_core;  // out: finish() has something to do when the job is done
    ipsec::AhKept kept;
    ipsec::Sa* around;  // out: whose AH is around ESP; `kept` and `sequence` are AH's then. Null: none
  };
  static_assert(sizeof(Work) <= 72);

  static constexpr std::uint32_t no_place = 0xffffffff;
  static constexpr std::uint32_t per_frame =
      header_per_frame + sizeof(crypto::Job) + sizeof(Work) + sizeof(std::uint32_t) + sizeof(crypto::Verdict);

  IpsecArea(std::byte* area, std::uint32_t capacity)
      : header(reinterpret_cast<Header*>(area)),
        jobs(reinterpret_cast<crypto::Job*>(area + sizeof(Header))),
        works(reinterpret_cast<Work*>(jobs + capacity)),
        places(reinterpret_cast<std::uint32_t*>(works + capacity)),
        verdicts(reinterpret_cast<crypto::Verdict*>(places + capacity)),
        capacity(capacity) {}

  std::uint32_t jobs_in_all() const { return header->jobs + capacity - header->kept; }
  // The i-th of all.
  std::uint32_t place(std::uint32_t i) const { return i < header->jobs ? i : header->kept + i - header->jobs; }

  Header* header;
  crypto::Job* jobs;
  Work* works;
  std::uint32_t* places;  // by frame
  crypto::Verdict* verdicts;
  std::uint32_t capacity;
};

}  // namespace sluice::function
