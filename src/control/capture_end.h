// When the captures that a gateway reads have been read to their end and forwarded.
//
//   if (end.reached(engine.stats())) ...     // asked as often as one likes
//
// A capture's port never says that it has ended: it has no frame for who polls it. So the end is where every lane has
// polled in vain, at least twice, while nothing was received and nothing was in flight. That nothing was received for a
// while does not do: a lane that has much to do with a frame, or that the machine does not let run, is no end.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine_stats.h"

namespace sluice::control {

class CaptureEnd {
 public:
  bool reached(const engine::EngineStats& stats);

 private:
  std::uint64_t received_ = 0;
  std::vector<std::uint64_t> polls_;  // in vain, of each lane, when something last changed
};

}  // namespace sluice::control
