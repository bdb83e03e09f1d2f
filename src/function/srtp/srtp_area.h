// What SRTP keeps of a batch from classify() to apply(), in the element's own area of it: jobs and, beside them, what
// their packets need to be finished.
//
// A frame has a place: that of its job, or one of outcome's. Jobs stand close together, in the order of frames; those
// that are kept from a device stand at the other end, the last frame's first.
// Threads: a batch is one thread's at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/options.h"
#include "function/srtp/srtp.h"

namespace sluice::function {

// What becomes of a frame without a job.
namespace outcome {

constexpr std::uint32_t passes = 0xffffffff, hands_over = 0xfffffffe;  // to the host
constexpr std::uint32_t drops = 0x80000000;                            // and the reason

constexpr std::uint32_t drop(packet::Reason reason) {
  return drops | reason;
}
constexpr bool is_job(std::uint32_t place) {
  return place < drops;
}
// Of a place that neither passes nor hands over.
constexpr bool is_drop(std::uint32_t place) {
  return (place & drops) != 0;
}
constexpr packet::Reason reason(std::uint32_t dropped) {
  return static_cast<packet::Reason>(dropped & ~drops);
}

}  // namespace outcome

struct Srtp::Area {
  struct alignas(64) Header {
    const MediaStreamTable* table;
    std::uint64_t installs;  // that the device has
    std::uint64_t now;       // when frames were classified last
    std::uint32_t jobs;      // at places [0, jobs): the device's, or the core's in its stead
    std::uint32_t kept;      // at [kept, capacity), the last frame's first: the core's alone
    std::uint32_t finished;
    bool kept_done;
    bool sums;             // a job asks for some
    bool not_computed;     // null_result() has written the results: no sum is right
    device::RunList runs;  // of the device's jobs
  };
  // So many bytes for each frame of the smallest batch hold it.
  static constexpr std::uint32_t header_per_frame = 11;
  static_assert(sizeof(Header) <= header_per_frame * engine::batch_range.least);

  // What is to be known of a job until its packet is finished.
  struct Work {
    srtp::Pending pending;
    MediaLeg* leg;  // null: finished
    MediaStream* stream;
    std::uint32_t frame;  // its index in the batch
    std::uint16_t udp_offset;
    bool rtcp : 1, protects : 1;
    bool checks : 1;   // the UDP checksum, by the job's sum before
    bool makes : 1;    // a new one, by the sum after
    bool unowned : 1;  // prepared when the stream was nobody's yet
  };
  static_assert(sizeof(Work) == 48);

  static constexpr std::uint32_t per_frame = header_per_frame + sizeof(crypto::Job) + sizeof(Work) +
                                             sizeof(std::uint32_t) + sizeof(crypto::Sums) + sizeof(crypto::Verdict);

  Area(std::byte* area, std::uint32_t capacity)
      : header(reinterpret_cast<Header*>(area)),
        jobs(reinterpret_cast<crypto::Job*>(area + sizeof(Header))),
        works(reinterpret_cast<Work*>(jobs + capacity)),
        places(reinterpret_cast<std::uint32_t*>(works + capacity)),
        sums(reinterpret_cast<crypto::Sums*>(places + capacity)),
        verdicts(reinterpret_cast<crypto::Verdict*>(sums + capacity)),
        capacity(capacity) {}

  std::uint32_t jobs_in_all() const { return header->jobs + capacity - header->kept; }
  // The i-th of all.
  std::uint32_t place(std::uint32_t i) const { return i < header->jobs ? i : header->kept + i - header->jobs; }
  // The batch's place among the readers of the streams' table.
  static std::size_t reader_of(const engine::Batch& batch) {
    return std::size_t{batch.lane} * engine::batches_range.most + batch.slot;
  }

  Header* header;
  crypto::Job* jobs;
  Work* works;
  std::uint32_t* places;  // by frame
  crypto::Sums* sums;
  crypto::Verdict* verdicts;
  std::uint32_t capacity;
};

}  // namespace sluice::function
