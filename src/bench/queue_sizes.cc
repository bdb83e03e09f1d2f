#include "bench/queue_sizes.h"

#include <algorithm>
#include <chrono>

#include "packet/frame_mix.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned largest_batch = 8192, smallest_batch = 512;
constexpr unsigned most_descriptors = 32768;  // of a NIC's queue
constexpr unsigned spare_frames = 1024;       // in bursts, for each lane

// Of `frames` that all lanes together may have, those of one of `parts` in a multiple of a burst.
unsigned share_of(double frames, unsigned parts, unsigned least, unsigned most) {
  return static_cast<unsigned>(std::clamp<double>(frames / parts, least, most)) / 64 * 64;
}

}  // namespace

double mean_frame(const std::string& mix) {
  const auto made = packet::FrameMix::make(mix);
  return made ? made->mean() : packet::FrameMix::largest_frame;
}

void fill_in(const BenchOptions& options, const HeldCase& one, double ceiling, RigOptions& rig) {
  const QueueShares shares = one.queues;
  rig.mix = one.mix;
  rig.engine.deadline = std::chrono::nanoseconds(static_cast<std::int64_t>(one.deadline_ms * 1e6));
  rig.engine.cycle = std::chrono::nanoseconds(static_cast<std::int64_t>(one.cycle_us * 1e3));
  rig.engine.overlap = one.overlap;
  rig.engine.batches = options.batches != 0 ? options.batches : one.batches;
  rig.ordered = true;
  rig.engine.streams = 8;
  rig.engine.cpu_below = 0;
  const double frames = one.deadline_ms * 1e-3 * ceiling * 1e9 / mean_frame(rig.mix);
  rig.engine.batch = share_of(shares.under_way * frames, rig.lanes * rig.engine.batches, smallest_batch, largest_batch);
  rig.ring =
      options.ring != 0 ? options.ring : share_of(shares.waiting * frames, rig.lanes, smallest_batch, most_descriptors);
  apply(options, rig.engine);
  // No more than that, as of a NIC: a core's cache holds what it knows of them.
  const unsigned needed = rig.ring + rig.engine.batches * rig.engine.batch + spare_frames;
  rig.frames = options.frames != 0 ? options.frames : needed;
  rig.ring = std::min(rig.ring, rig.frames);
}

}  // namespace sluice::cli::bench
