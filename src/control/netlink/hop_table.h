// Sets of next hops, stored once each: a full table has hundreds of thousands of routes and a handful of hop sets.
//
// A set is named by a small id and knows what it means for the router: which ports and gateways, or that the kernel
// must forward (a hop leaves through an interface that is no twin, or needs an encapsulation).
//
// Thread-safety: none (the control thread). Cost: interning is one hash lookup; the rest are array accesses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "control/netlink/decoder.h"
#include "function/control_plane.h"

namespace sluice::control::netlink {

using HopSetId = std::uint32_t;
inline constexpr HopSetId no_hops = 0;

struct Resolved {
  bool usable = false;  // at least one hop is alive
  function::RouteKind kind = function::RouteKind::local;
  std::vector<function::NextHop> next_hops;  // for unicast; the first function::most_next_hops
  bool shortened = false;                    // there are more of them
  bool operator==(const Resolved&) const = default;
};

class HopTable {
 public:
  HopTable();

  HopSetId intern(std::span<const Hop> hops);
  const std::vector<Hop>& hops(HopSetId id) const { return sets_[id].hops; }
  const Resolved& resolved(HopSetId id) const { return sets_[id].resolved; }

  // The interface is the twin of `port`, or of none. Sets that now mean something else are changed() until settled().
  void set_port(int ifindex, std::optional<function::PortIndex> port);
  std::optional<function::PortIndex> port(int ifindex) const;
  bool any_changed() const { return any_changed_; }
  bool changed(HopSetId id) const { return sets_[id].changed; }
  void settled();

  // Ids below ids() may be in use. keep() frees every set whose mark is false.
  std::size_t ids() const { return sets_.size(); }
  std::size_t live() const { return index_.size(); }
  // Sets that were shortened so far.
  std::uint64_t shortened() const { return shortened_; }
  void keep(const std::vector<bool>& marks);

 private:
  struct Set {
    std::vector<Hop> hops;
    Resolved resolved;
    bool changed = false;
  };
  struct Hash {
    std::size_t operator()(const std::vector<Hop>& hops) const;
  };
  Resolved resolve(const std::vector<Hop>& hops) const;

  std::vector<Set> sets_;
  std::vector<HopSetId> free_;
  std::unordered_map<std::vector<Hop>, HopSetId, Hash> index_;
  std::unordered_map<int, function::PortIndex> ports_;
  bool any_changed_ = false;
  std::uint64_t shortened_ = 0;
};

}  // namespace sluice::control::netlink
