// The router's control plane: takes links, neighbours and routes, decides which route of a prefix is in force, and
// keeps the forwarding tables (lookup::Fib with the GPU's copy attached) and the adjacencies up to date.
//
// Of several routes for one prefix the lowest metric is in force. A neighbour is a host route, so that a destination on
// the link is found by the same lookup. It is one only while the longest route that matches its address says that the
// address is on that very link: a single next hop without a gateway through the neighbour's port. The kernel keeps a
// neighbour for whatever sender address an ARP request names; without this any host on a link could draw any address to
// itself. Where a gateway lies is another question: on_link_prefixes.h.
//
// Thread-safety: every call from any thread. A mutex orders the callers of the control path (mirror, reload, API);
// lanes never take it. size(), neighbour_count(), mtu(), carries() and source() do not wait for it. Each is one load
// (source(): two) of what is written under it. Two of them may be of different moments. Cost: a hash look-up and one
// change of the forwarding table per call; for a route, besides, O(log n) to find the neighbours inside its prefix, and
// a few hash look-ups for each one that no longer route decides on. A route without a gateway, or one that does not
// forward, besides moves the gateways inside its prefix that were given without a port (adjacency.h): no route through
// them changes.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "function/control_plane.h"
#include "function/route/adjacency.h"
#include "function/route/ingress_table.h"
#include "function/route/source_addresses.h"
#include "lookup/fib.h"

namespace sluice::function {

struct NeighbourRow {
  PortIndex port = 0;
  packet::IpAddress address;
  packet::MacAddress mac;
};

class RouteTable : public ControlPlane {
 public:
  // `macs`: the ports' own link addresses, as packet::mac_word; a table without lanes needs none.
  RouteTable(lookup::Fib& fib, AdjacencyTable& adjacencies, std::size_t ports, std::vector<std::uint64_t> macs = {});

  Expected<void> add_route(const Route& route) override;
  Expected<void> remove_route(const packet::IpPrefix& prefix, std::uint32_t metric) override;
  Expected<void> add_neighbour(PortIndex port, const packet::IpAddress& address,
                               const packet::MacAddress& mac) override;
  Expected<void> remove_neighbour(PortIndex port, const packet::IpAddress& address) override;
  void set_link(PortIndex port, bool up, std::uint32_t mtu) override;
  void set_source(std::optional<PortIndex> port, int family, const packet::IpAddress& address) override;
  void set_ingress(PortIndex port, const PortIngress& ingress) override;
  // Calls it while nobody changes the forwarding table.
  template <typename Call>
  auto while_held(const Call& call) {
    const std::lock_guard lock(mutex_);
    return call();
  }
  // Whose frames the ports take.
  const IngressTable& ingress() const { return ingress_; }
  // Whether the port's device itself has a link. Its link is up when this and set_link() both say so: the kernel
  // reports up to a second late that a twin lost its carrier.
  void set_carrier(PortIndex port, bool up);

  // Prefixes that have a route, of IPv4 (4) or IPv6 (6); host routes of neighbours are not counted.
  std::size_t size(int family) const { return sizes_[family == 6].load(std::memory_order_relaxed); }
  std::uint32_t mtu(PortIndex port) const { return mtu_[port].load(std::memory_order_relaxed); }
  // Both in one look: the MTU of a link that is up, or 0.
  std::uint32_t carries(PortIndex port) const { return carries_[port].load(std::memory_order_relaxed); }
  // Whether routes say that the address is the host's own, as in a frame. Any thread. Cost: a look-up.
  bool is_own(std::uint8_t family, const std::uint8_t* address) const;
  // From where the router answers what came in by a port (set_source()).
  const SourceAddresses& sources() const { return sources_; }
  // Before lanes run.
  void set_lanes(std::size_t lanes) {
    ingress_.set_readers(2 * lanes);  // Ingress::admit_place()
    sources_.set_lanes(lanes);
  }
  // The first `limit` of the routes in force whose prefix is wanted, by family, address and length; `matching`: how
  // many there are.
  std::vector<Route> list(const std::function<bool(const packet::IpPrefix&)>& wanted, std::size_t limit,
                          std::uint64_t& matching) const;
  std::vector<NeighbourRow> neighbours() const;
  // What a lookup's answer stands for; nothing: no gateway (local, blackhole, no route).
  std::vector<NextHop> next_hops(lookup::NextHopId id) const;
  std::size_t neighbour_count() const { return neighbour_count_.load(std::memory_order_relaxed); }
  std::vector<AdjacencyTable::Gateway> gateways() const;

 private:
  struct Candidate {
    std::uint32_t metric;
    std::uint32_t protocol;
    lookup::NextHopId id;
    RouteKind kind;
  };
  struct PrefixHash {
    std::size_t operator()(const packet::IpPrefix& prefix) const { return hash_of(prefix); }
  };
  using Routes = std::unordered_map<packet::IpPrefix, Candidate, PrefixHash>;
  struct NeighbourKey {
    packet::IpAddress address;  // first, so that those inside a prefix lie side by side
    PortIndex port = 0;         // several links may know the same address
    auto operator<=>(const NeighbourKey&) const = default;
  };
  struct Neighbour {
    packet::MacAddress mac;
    int decided_by = -1;                  // length of the longest route that matches; -1: there is none
    std::optional<lookup::NextHopId> id;  // held by the host route while that is in force
  };
  Expected<lookup::NextHopId> next_hop_of(const Route& route);
  Expected<void> insert(const packet::IpPrefix& prefix, const Candidate& candidate);
  Expected<void> erase(const packet::IpPrefix& prefix, std::uint32_t metric);
  Route route_of(const packet::IpPrefix& prefix, const Candidate& candidate) const;

  // The longest route that matches the address and is no longer than `from`.
  Routes::const_iterator longest_match(const packet::IpAddress& address, unsigned from) const;
  // Brings a neighbour's host route in line with the routes; `from`: no longer route matches its address.
  Expected<void> judge(const NeighbourKey& key, Neighbour& neighbour, unsigned from);
  void judge_inside(const packet::IpPrefix& prefix);
  void judge_waiting(std::uint8_t family);
  Expected<void> put_host_route(const NeighbourKey& key, Neighbour& neighbour);
  void refresh_link(PortIndex port);
  // A prefix of best_ has come (1) or gone (-1).
  void count(const packet::IpPrefix& prefix, int change);
  Expected<void> take_host_route(const NeighbourKey& key, Neighbour& neighbour);

  lookup::Fib& fib_;
  AdjacencyTable& adjacencies_;
  IngressTable ingress_;
  mutable std::mutex mutex_;
  Routes best_;
  std::unordered_map<packet::IpPrefix, std::vector<Candidate>, PrefixHash> others_;
  std::array<std::array<std::uint32_t, 129>, 2> lengths_{};  // prefixes in best_ by family (IPv4, IPv6) and length
  std::map<NeighbourKey, Neighbour> neighbours_;
  std::set<NeighbourKey> waiting_;  // whose host route found no capacity
  std::atomic<std::size_t> neighbour_count_{0};
  std::array<std::atomic<std::size_t>, 2> sizes_{};  // prefixes in best_ by family
  std::vector<std::atomic<std::uint32_t>> mtu_, carries_;
  std::vector<bool> up_, carrier_;
  SourceAddresses sources_;
};

}  // namespace sluice::function
