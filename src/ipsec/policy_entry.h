// A policy as lanes see it: what the database that lanes look into (spd.h) finds for a packet.
//
// It lives until the reader that found it has left the view that it found it by (view.h). Of an IPv4 policy all that a
// lane reads is in one line.
//
// Thread-safety: lanes read it, and write `wanted` alone (acquires.h); the rest is written before lanes find it, but
// for `sa`, which changes while they read.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "ipsec/packet_key.h"
#include "ipsec/selector.h"

namespace sluice::ipsec {

struct Sa;

struct alignas(64) PolicyEntry {
  // The selector's bits in the mask of its tuple; of IPv4 the others are 0 and not looked at.
  std::array<std::uint64_t, 2> value{};
  std::uint64_t rank = 0;   // priority, then the sum of the prefixes' lengths: the lowest is the packet's
  std::uint64_t order = 0;  // who came first: of equal ranks the lowest
  std::uint32_t tuple = 0;  // its number, never used again
  std::uint32_t index = 0;  // of counters (lane_counts.h)
  // Out: the SA of each template, null where there is none now. Never of a template that is per packet (below).
  std::array<std::atomic<Sa*>, most_templates> sa{};

  std::array<std::uint64_t, 3> more_value{};  // of IPv6
  Action action = Action::protect;
  std::uint8_t templates = 0;  // how many
  // A bit for each template in transport mode whose addresses the selector does not say: its SA is found by those of
  // the packet (Ways::find()).
  std::uint8_t per_packet = 0;
  mutable std::atomic<bool> wanted{false};  // an SA is being asked for (acquires.h)
  Policy policy{};                          // as it was given, in normal form

  PolicyEntry() = default;
  bool is_before(const PolicyEntry& other) const { return std::pair(rank, order) < std::pair(other.rank, other.order); }
};

}  // namespace sluice::ipsec
