// A policy as lanes see it: what the database that lanes look into (spd.h) finds for a packet.
//
// It lives until the reader that found it has left the view that it found it by (view.h). All that lanes read is in
// three lines: of a policy of IPv4 that is no more than found in one, of one that is compared with SAs in two.
//
// Thread-safety: lanes read it, and write `wanted` alone (acquires.h); the rest is written before lanes find it, but
// for `sa`, which changes while they read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ipsec/packet_key.h"
#include "ipsec/selector.h"

namespace sluice::ipsec {

struct Sa;

// A Template as lanes compare it.
struct EntryTemplate {
  std::array<std::uint8_t, 16> source{}, destination{};  // of a tunnel, as in a frame
  std::uint32_t reqid = 0, spi = 0;                      // host order; 0: any
  Protocol protocol{};
  Mode mode{};
  std::uint8_t family = 0;  // of the addresses; 0: any
  bool optional = false;
};

struct alignas(64) PolicyEntry {
  // The selector's bits in the mask of its tuple; of IPv4 the others are 0 and not looked at.
  std::array<std::uint64_t, 2> value{};
  std::uint64_t rank = 0;   // priority, then the sum of the prefixes' lengths: the lowest is the packet's
  std::uint64_t order = 0;  // who came first: of equal ranks the lowest
  std::uint32_t tuple = 0;  // its number, never used again
  std::uint32_t index = 0;  // of counters (lane_counts.h)
  // Out: the SA of each template, null where there is none now. Never of a template that is per packet (below).
  std::array<std::atomic<Sa*>, most_templates> sa{};

  Action action = Action::protect;
  std::uint8_t templates = 0;  // how many
  // A bit for each template in transport mode whose addresses the selector does not say: its SA is found by those of
  // the packet (Ways::find()).
  std::uint8_t per_packet = 0;
  mutable std::atomic<bool> wanted{false};  // an SA is being asked for (acquires.h)

  alignas(64) std::array<EntryTemplate, most_templates> with{};
  std::array<std::uint64_t, 3> more_value{};  // of IPv6

  Policy policy{};  // as it was given, in normal form; not for lanes

  PolicyEntry() = default;
  bool is_before(const PolicyEntry& other) const { return std::pair(rank, order) < std::pair(other.rank, other.order); }
};
static_assert(offsetof(PolicyEntry, with) == 64 && offsetof(PolicyEntry, policy) <= 192);

}  // namespace sluice::ipsec
