// Lifetimes of an SA in packets and bytes (RFC 4301 section 4.4.2.1), counted by many lanes without a line that all of
// them write: a lane takes a share of what is left, and counts its packets against that. Lifetimes in seconds are the
// watcher's (databases.h).
//
// Hard limit: lanes together never let more through. The SA is dead when a lane needs more than is left; what other
// lanes have in shares then is lost. That is at most an eighth of the limit, and at most 256 packets and 256 KiB for
// each lane.
//
// Soft limit: it is reached when that much has been given out in shares, so it is said at most that much too early, and
// never too late.
//
// Thread-safety: take() any lanes, of a lane one thread at a time; set() and granted() any one thread, beside them.
// Cost: some ns and two lines, one of them the lane's own; every share one compare-and-exchange.
#pragma once

#include <atomic>
#include <cstdint>

#include "ipsec/lane_counts.h"
#include "ipsec/security_association.h"

namespace sluice::ipsec {

// One SA's, for all lanes: limits, and how much was given out in shares.
class alignas(64) LifetimeBudget {
 public:
  // What was given out stays; where there was no limit, `used` was. Call take() only for an SA that has a limit.
  void set(const Limit& packets, const Limit& bytes, const Count& used);
  Count granted() const {
    return {packets_.granted.load(std::memory_order_relaxed), bytes_.granted.load(std::memory_order_relaxed)};
  }
  bool soft_reached() const { return packets_.soft_reached() || bytes_.soft_reached(); }

 private:
  friend class LifetimeShares;
  struct Amount {
    std::atomic<std::uint64_t> granted{0}, soft{0}, hard{0};
    bool soft_reached() const;
    void set(const Limit& limit, std::uint64_t used);
    // `least` at least, or nothing: 0.
    std::uint64_t take(std::uint64_t least, std::uint64_t usual, std::uint64_t lanes, bool& reached_soft);
  };
  Amount packets_, bytes_;
};

// What lanes have left of their shares.
class LifetimeShares {
 public:
  LifetimeShares(std::size_t lanes, std::size_t objects) : lanes_(lanes), left_(lanes, objects) {}

  enum class Result : std::uint8_t {
    fine,
    soft,  // fine, and this has reached the soft limit
    hard,  // refused: nothing was counted
  };
  // For so many packets of one SA, all or none.
  Result take(std::uint32_t lane, std::uint32_t object, LifetimeBudget& budget, std::uint32_t packets,
              std::uint64_t bytes) const;

  void prefetch(std::uint32_t lane, std::uint32_t object) const { left_.prefetch(lane, object); }
  // While no lane counts for that object.
  void clear(std::uint32_t object) const { left_.clear(object); }

 private:
  const std::size_t lanes_;
  LaneCounts left_;
};

}  // namespace sluice::ipsec
