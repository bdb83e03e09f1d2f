// RTP of many streams through the chain srtp, bridge in the engine: what `bench media` and `bench figures` measure.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/media_source.h"
#include "bench/queue_sizes.h"
#include "bench/rig.h"
#include "bench/rounds.h"
#include "function/srtp/srtp.h"

namespace sluice::cli::bench {

inline constexpr std::uint64_t media_memory_bytes = 4ULL << 30;

// One kind of run, and the source within it while a rig lives.
struct MediaBed {
  RigOptions rig;
  RtpStreams streams;
  std::string device;
  MediaSource* source = nullptr;

  // Its address must stay. `ceiling`: GB/s, for the sizes of queues.
  static std::unique_ptr<MediaBed> make(const BenchOptions& options, const HeldCase& one, const std::string& device,
                                        double ceiling);

  // Everything that leaves, of a run of its own, is opened and compared with what went in.
  Expected<void> verify();
  // Ends a rig's run: an Error as well when the element dropped frames that were right, since a rate of these would be
  // one of something else.
  Expected<void> finish(Rig& rig) const;
  // In a mode, as fast as lanes poll, the middle one of rounds of so long each (rounds.h).
  Expected<Outcome> measure(engine::Mode mode, double seconds, unsigned rounds = repetitions);
};

function::Srtp::SrtpOptions srtp_options(const RtpStreams& streams);

// GB/s that move over the link each way, from RTP's first byte to the end of the tag, of frames as they leave.
double moved_gbytes(const RtpStreams& streams, const Outcome& outcome);
// Bytes of frames for each that moves.
double frame_share(const RtpStreams& streams, const std::string& mix);

}  // namespace sluice::cli::bench
