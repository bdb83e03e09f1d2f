// The router's control plane: takes links, neighbours and routes, decides which route of a prefix is in force, and
// keeps the forwarding tables (lookup::Fib with the GPU's copy attached) and the adjacencies up to date.
//
// Of several routes for one prefix the lowest metric is in force. A neighbour is a host route below all of them, so
// that a destination on the link is found by the same lookup.
//
// Thread-safety: a mutex orders the callers of the control path (mirror, API); lanes never take it. Cost: a hash
// look-up and one change of the forwarding table per call.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "function/route/adjacency.h"
#include "function/route/control_plane.h"
#include "lookup/fib.h"

namespace sluice::function {

struct NeighbourRow {
  PortIndex port = 0;
  packet::IpAddress address;
  packet::MacAddress mac;
};

class RouteTable : public ControlPlane {
 public:
  RouteTable(lookup::Fib& fib, AdjacencyTable& adjacencies, std::size_t ports);

  Expected<void> add_route(const Route& route) override;
  Expected<void> remove_route(const packet::IpPrefix& prefix, std::uint32_t metric) override;
  Expected<void> add_neighbour(PortIndex port, const packet::IpAddress& address,
                               const packet::MacAddress& mac) override;
  Expected<void> remove_neighbour(PortIndex port, const packet::IpAddress& address) override;
  void set_link(PortIndex port, bool up, std::uint32_t mtu) override;

  std::size_t size(int family) const;
  bool link_up(PortIndex port) const { return up_[port].load(std::memory_order_relaxed); }
  std::uint32_t mtu(PortIndex port) const { return mtu_[port].load(std::memory_order_relaxed); }
  // Both in one look: the MTU of a link that is up, or 0.
  std::uint32_t carries(PortIndex port) const { return carries_[port].load(std::memory_order_relaxed); }
  // The first `limit` of the routes in force whose prefix is wanted, by family, address and length; `matching`: how
  // many there are.
  std::vector<Route> list(const std::function<bool(const packet::IpPrefix&)>& wanted, std::size_t limit,
                          std::uint64_t& matching) const;
  std::vector<NeighbourRow> neighbours() const;
  // What a lookup's answer stands for; nothing: no gateway (local, blackhole, no route).
  std::vector<NextHop> next_hops(lookup::NextHopId id) const;
  // Like size(), without waiting for whoever changes the table.
  std::size_t neighbour_count() const { return neighbour_count_.load(std::memory_order_relaxed); }
  std::vector<AdjacencyTable::Gateway> gateways() const;

 private:
  struct Candidate {
    std::uint32_t metric;
    std::uint32_t protocol;
    lookup::NextHopId id;
    RouteKind kind;
    bool neighbour;
    PortIndex port = 0;  // of a neighbour: several links may know the same address

    // A route takes the place of one that was told by the same name.
    bool same_name(const Candidate& other) const {
      return metric == other.metric && neighbour == other.neighbour && port == other.port;
    }
  };
  struct PrefixHash {
    std::size_t operator()(const packet::IpPrefix& prefix) const { return hash_of(prefix); }
  };
  Expected<lookup::NextHopId> next_hop_of(const Route& route);
  PortIndex link_of(const packet::IpAddress& gateway) const;
  Expected<void> insert(const packet::IpPrefix& prefix, const Candidate& candidate);
  Expected<void> erase(const packet::IpPrefix& prefix, const std::function<bool(const Candidate&)>& match);
  Route route_of(const packet::IpPrefix& prefix, const Candidate& candidate) const;

  lookup::Fib& fib_;
  AdjacencyTable& adjacencies_;
  mutable std::mutex mutex_;
  std::unordered_map<packet::IpPrefix, Candidate, PrefixHash> best_;
  std::unordered_map<packet::IpPrefix, std::vector<Candidate>, PrefixHash> others_;
  struct Neighbour {
    packet::MacAddress mac;
    bool has_route;  // the host route found room
  };
  std::map<std::pair<PortIndex, packet::IpAddress>, Neighbour> neighbours_;
  std::atomic<std::size_t> neighbour_count_{0};
  // Routes without a gateway, by prefix and metric: where gateways are found.
  std::map<std::pair<packet::IpPrefix, std::uint32_t>, PortIndex> on_link_;
  std::vector<std::atomic<std::uint32_t>> mtu_, carries_;
  std::vector<std::atomic<bool>> up_;
};

}  // namespace sluice::function
