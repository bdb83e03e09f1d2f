// All that lanes look into and write into, in place: one object for all readers, changed one entry at a time by
// Databases, and read through a View (view.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bounded_queue.h"
#include "ipsec/acquires.h"
#include "ipsec/due_set.h"
#include "ipsec/lane_counts.h"
#include "ipsec/lifetime.h"
#include "ipsec/sa.h"
#include "ipsec/sad.h"
#include "ipsec/slot_pool.h"
#include "ipsec/spd.h"
#include "ipsec/too_big.h"
#include "ipsec/ways.h"

namespace sluice::ipsec {

// An authentic packet has come from elsewhere than the SA says.
struct Moved {
  std::uint32_t index = 0;   // of the SA
  std::uint64_t serial = 0;  // which tells it from a later one of that index
  std::array<std::uint8_t, 16> source{};
  std::uint16_t port = 0;  // host order
};

struct Tables {
  Tables(std::size_t sas, std::size_t policies, std::size_t lanes)
      : pool(sas),
        out(policies),
        in(policies),
        sad(pool),
        ways(sas, policies),
        sa_counts(lanes, sas),
        out_counts(lanes, policies),
        in_counts(lanes, policies),
        shares(lanes, sas),
        due(sas),
        moved(most_moved),
        too_big(most_too_big) {}
  static constexpr std::size_t most_moved = 1024, most_too_big = 256;

  SlotPool<Sa> pool;
  Spd out, in;
  Sad sad;
  Ways ways;
  LaneCounts sa_counts, out_counts, in_counts;
  LifetimeShares shares;
  Acquires acquires;
  DueSet due;  // SAs that have reached something
  BoundedQueue<Moved> moved;
  BoundedQueue<TooBig> too_big;
  alignas(64) std::atomic<std::uint32_t> seconds{1};  // since the start, and 1: the watcher's clock for lanes
};

}  // namespace sluice::ipsec
