#include "cli/bench/queue_sizes.h"

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

void size_queues(const BenchOptions& options, double ceiling, QueueShares shares, RigOptions& rig) {
  const double seconds = std::chrono::duration<double>(rig.engine.deadline).count();
  const double frames = seconds * ceiling * 1e9 / mean_frame(rig.mix);
  rig.engine.batches = options.batches != 0 ? options.batches : rig.engine.batches;
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
