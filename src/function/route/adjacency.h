// What the id of a next hop means: one 64-bit word per id, which lanes read with a single load while the control plane
// changes it. So a neighbour's new MAC address, or its loss, is one store that all routes through it see at once,
// without touching the forwarding tables.
//
// Word:  bits 0..47 the neighbour's MAC (first byte lowest), 48..54 the port (of kinds forward, unresolved and awaited;
// 127: none), 55 whether the next hop is of Sluice's own routes, 56..63 the kind. For a group the low 32 bits are its
// index. Id 0 is "no route".
//
// Thread-safety: one writer, any number of readers. A reader sees each word as a whole. A group's members are written
// before the group is published.
//
// A gateway given without a port leaves by the port of the longest on-link prefix that covers it at the moment,
// whatever the order in which gateways and prefixes come and go; covered by none it is unresolved. Only Sluice's own
// routes give one so (a route of the kernel names the port), and the kernel need not have that route: nothing for such
// a gateway goes there. Frames are dropped until it is resolved, and Sluice itself answers those that cannot be
// forwarded.
//
// A freed id, or group, rests before it can mean something else: batches in flight and a GPU's tables may still name
// it. `settled` says until when it must have been freed; by default, a second (`grace`) ago. A next hop that comes back
// while its id rests gets that id again.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "function/control_plane.h"
#include "function/route/on_link_prefixes.h"
#include "lookup/next_hop.h"
#include "packet/ip_address.h"

namespace sluice::function {

enum class AdjacencyKind : std::uint8_t {
  no_route,     // the kernel answers "net unreachable", or drop
  forward,      // MAC and port are known
  unresolved,   // a neighbour whose MAC is not known: the kernel takes the frame and resolves it
  awaited,      // the same for a gateway of any_port: drop; the kernel is asked for the MAC (gateways())
  local,        // this host's own traffic
  blackhole,    // drop
  unreachable,  // the kernel has the same route and answers with an error
  group,        // ECMP
};

struct Adjacency {
  std::uint64_t word = 0;
  AdjacencyKind kind() const { return static_cast<AdjacencyKind>(word >> 56); }
  std::uint16_t port() const { return static_cast<std::uint16_t>(word >> 48 & 0x7f); }
  // The next hop of a route that the kernel need not have.
  bool own() const { return (word >> 55 & 1) != 0; }
  std::uint64_t mac_word() const { return word & 0xffffffffffffULL; }
  std::uint32_t group() const { return static_cast<std::uint32_t>(word); }

  static Adjacency of(AdjacencyKind kind, std::uint16_t port = 0, const packet::MacAddress& mac = {}, bool own = false);
  static Adjacency of_group(std::uint32_t index);
};

class AdjacencyTable {
 public:
  static constexpr std::uint32_t group_slots = most_next_hops;  // flows are spread over this many slots of a group
  static constexpr PortIndex any_port = 0xffff;                 // of a gateway whose port is what on-link prefixes say

  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds grace{1};
  // The moment before which what was freed then is named nowhere any more.
  using Settled = std::function<Clock::time_point()>;

  explicit AdjacencyTable(
      std::uint32_t max_ids = 1U << 17, std::uint32_t max_groups = 4096,
      Settled settled = [] { return Clock::now() - grace; });

  // Packet path.
  Adjacency at(lookup::NextHopId id) const { return {words_[id].load(std::memory_order_acquire)}; }
  lookup::NextHopId member(std::uint32_t group, std::uint32_t hash) const {
    return groups_[group][hash % group_slots].load(std::memory_order_relaxed);
  }

  // Control path. Ids that always exist.
  static constexpr lookup::NextHopId local_id = 1;
  static constexpr lookup::NextHopId blackhole_id = 2;
  static constexpr lookup::NextHopId unreachable_id = 3;
  static constexpr lookup::NextHopId elsewhere_id = 4;  // of kind local: the kernel forwards it

  // The id of a gateway or neighbour, made when it is new; counts references. Without an address: the link itself, for
  // on-link destinations that have no neighbour entry. A gateway of any_port and the same address on a port are two.
  // Error, here and from hold_group(): none is free; what to do.
  Expected<lookup::NextHopId> hold(PortIndex port, const packet::IpAddress& address);
  // Each member gets a slot, so that none goes without; of the others each goes to the member that has the fewest for
  // its weight, which comes as near to the weights as 64 slots can. Error, besides: more members than slots.
  Expected<lookup::NextHopId> hold_group(const std::vector<std::pair<lookup::NextHopId, std::uint8_t>>& members);
  void release(lookup::NextHopId id);

  void set_mac(PortIndex port, const packet::IpAddress& address, const packet::MacAddress& mac);
  void clear_mac(PortIndex port, const packet::IpAddress& address);
  // The route of (prefix, metric) is on this port's link, elsewhere, or says nothing (any more): on_link_prefixes.h.
  // Cost: a look-up of the link, and one store, for each gateway of any_port inside the prefix.
  void set_on_link(const packet::IpPrefix& prefix, std::uint32_t metric, std::optional<PortIndex> port);

  struct Gateway {
    PortIndex port;
    packet::IpAddress address;
    bool resolved;
  };
  // Gateways that routes use, for the mirror to resolve.
  std::vector<Gateway> gateways() const;
  // What an id stands for: one next hop, the members of a group, or nothing (local, blackhole).
  std::vector<NextHop> next_hops(lookup::NextHopId id) const;
  std::uint32_t used() const { return static_cast<std::uint32_t>(entries_.size()); }

 private:
  struct Key {
    PortIndex port;
    packet::IpAddress address;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    Key key;                                 // of a neighbour
    std::vector<lookup::NextHopId> members;  // of a group, each held
    std::vector<std::uint8_t> weights;
    std::uint32_t group = 0;
    std::uint32_t references = 0;
    PortIndex bound = any_port;  // the key's port, or that of the link on which a gateway of any_port lies
  };
  struct RestingId {
    lookup::NextHopId id;
    Clock::time_point since;
    std::optional<Key> key;  // of a neighbour, which may come back
  };
  struct RestingGroup {
    std::uint32_t group;
    Clock::time_point since;
  };
  Expected<lookup::NextHopId> new_id();
  Expected<std::uint32_t> new_group();
  void refresh(lookup::NextHopId id);
  void store(lookup::NextHopId id, Adjacency adjacency) { words_[id].store(adjacency.word, std::memory_order_release); }

  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::vector<std::array<std::atomic<lookup::NextHopId>, group_slots>> groups_;
  std::uint32_t max_ids_;
  Settled settled_;
  std::uint32_t next_id_ = elsewhere_id + 1;
  std::uint32_t next_group_ = 0;
  std::list<RestingId> resting_ids_;  // the longest at rest first
  std::map<Key, std::list<RestingId>::iterator> resting_keys_;
  std::deque<RestingGroup> resting_groups_;
  std::map<lookup::NextHopId, Entry> entries_;
  std::map<Key, lookup::NextHopId> by_key_;
  std::map<std::vector<std::pair<lookup::NextHopId, std::uint8_t>>, lookup::NextHopId> by_members_;
  std::map<Key, packet::MacAddress> macs_;
  OnLinkPrefixes on_link_;
};

}  // namespace sluice::function
