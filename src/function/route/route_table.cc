#include "function/route/route_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "packet/headers.h"

namespace sluice::function {
namespace {

bool is_on_link(const NextHop& hop) {
  return hop.gateway.empty() && hop.port != AdjacencyTable::any_port;
}

// Every link has these addresses (RFC 4291 section 2.5.6): the route that punts them does not say where one is.
bool is_on_every_link(const packet::IpPrefix& prefix) {
  return prefix.address.family == 6 && prefix.length == 10 && prefix.address.bytes[0] == 0xfe &&
         prefix.address.bytes[1] == 0x80;
}

// The port on whose link the route says that its prefix lies. Elsewhere: on several, or beside a gateway, or the route
// does not forward. Nothing: it says nothing about links.
std::optional<PortIndex> link_of(const Route& route) {
  if (route.kind != RouteKind::unicast) {
    return is_on_every_link(route.prefix) ? std::nullopt : std::optional(OnLinkPrefixes::elsewhere);
  }
  if (std::ranges::none_of(route.next_hops, &is_on_link)) {
    return std::nullopt;
  }
  const PortIndex port = route.next_hops.front().port;
  const bool one =
      std::ranges::all_of(route.next_hops, [&](const NextHop& hop) { return is_on_link(hop) && hop.port == port; });
  return one ? port : OnLinkPrefixes::elsewhere;
}

std::size_t family_index(const packet::IpAddress& address) {
  return address.family == 4 ? 0 : 1;
}

}  // namespace

RouteTable::RouteTable(lookup::Fib& fib, AdjacencyTable& adjacencies, std::size_t ports,
                       std::vector<std::uint64_t> macs)
    : fib_(fib),
      adjacencies_(adjacencies),
      ingress_(macs.empty() ? std::vector<std::uint64_t>(ports) : std::move(macs)),
      mtu_(ports),
      carries_(ports),
      up_(ports, true),
      carrier_(ports, true),
      sources_(ports) {
  for (std::size_t port = 0; port < ports; ++port) {
    mtu_[port].store(1500);
    carries_[port].store(1500);
  }
}

Expected<lookup::NextHopId> RouteTable::next_hop_of(const Route& route) {
  switch (route.kind) {
    case RouteKind::local:
      return route.elsewhere ? AdjacencyTable::elsewhere_id : AdjacencyTable::local_id;
    case RouteKind::unreachable:
      return AdjacencyTable::unreachable_id;
    case RouteKind::blackhole:
      return AdjacencyTable::blackhole_id;
    case RouteKind::unicast:
      break;
  }
  if (route.next_hops.empty()) {
    return make_error("route " + route.prefix.str() + " has no next hop");
  }
  std::vector<std::pair<lookup::NextHopId, std::uint8_t>> members;
  const auto release_all = [&] {
    for (const auto& [id, weight] : members) {
      adjacencies_.release(id);
    }
  };
  for (const NextHop& hop : route.next_hops) {
    if (hop.port >= mtu_.size() && hop.port != AdjacencyTable::any_port) {
      release_all();
      return make_error("route " + route.prefix.str() + ": there is no port number " + std::to_string(hop.port));
    }
    auto id = adjacencies_.hold(hop.port, hop.gateway);
    if (!id) {
      release_all();
      return id;
    }
    members.emplace_back(*id, hop.weight);
  }
  if (members.size() == 1) {
    return members.front().first;
  }
  std::sort(members.begin(), members.end());
  auto group = adjacencies_.hold_group(members);
  release_all();  // the group holds them now
  return group;
}

Expected<void> RouteTable::add_route(const Route& route) {
  const std::lock_guard lock(mutex_);
  auto id = next_hop_of(route);
  if (!id) {
    return tl::unexpected(id.error());
  }
  Expected<void> done = insert(route.prefix, {route.metric, route.protocol, *id, route.kind});
  if (!done) {
    adjacencies_.release(*id);
    return done;
  }
  adjacencies_.set_on_link(route.prefix, route.metric, link_of(route));
  judge_inside(route.prefix);
  return {};
}

Expected<void> RouteTable::insert(const packet::IpPrefix& prefix, const Candidate& candidate) {
  const auto found = best_.find(prefix);
  if (found == best_.end()) {
    if (auto added = fib_.add(prefix, candidate.id); !added) {
      return added;
    }
    best_.emplace(prefix, candidate);
    count(prefix, 1);
    return {};
  }
  Candidate& best = found->second;
  const auto same = [&](const Candidate& other) { return candidate.metric == other.metric; };
  if (same(best) || candidate.metric < best.metric) {
    if (candidate.id != best.id) {
      if (auto added = fib_.add(prefix, candidate.id); !added) {
        return added;
      }
    }
    const Candidate old = std::exchange(best, candidate);
    if (same(old)) {
      adjacencies_.release(old.id);
      return {};
    }
    others_[prefix].push_back(old);
    return {};
  }
  auto& others = others_[prefix];
  if (const auto at = std::find_if(others.begin(), others.end(), same); at != others.end()) {
    adjacencies_.release(at->id);
    *at = candidate;
  } else {
    others.push_back(candidate);
  }
  return {};
}

Expected<void> RouteTable::remove_route(const packet::IpPrefix& prefix, std::uint32_t metric) {
  const std::lock_guard lock(mutex_);
  Expected<void> done = erase(prefix, metric);
  if (done) {
    adjacencies_.set_on_link(prefix, metric, std::nullopt);
    judge_inside(prefix);
    judge_waiting(prefix.address.family);
  }
  return done;
}

Expected<void> RouteTable::erase(const packet::IpPrefix& prefix, std::uint32_t metric) {
  const auto match = [metric](const Candidate& candidate) { return candidate.metric == metric; };
  const auto found = best_.find(prefix);
  if (found == best_.end()) {
    return make_error("there is no route to " + prefix.str());
  }
  const auto others = others_.find(prefix);
  if (!match(found->second)) {
    if (others != others_.end()) {
      const auto at = std::find_if(others->second.begin(), others->second.end(), match);
      if (at != others->second.end()) {
        adjacencies_.release(at->id);
        others->second.erase(at);
        if (others->second.empty()) {
          others_.erase(others);
        }
        return {};
      }
    }
    return make_error("there is no such route to " + prefix.str());
  }
  const lookup::NextHopId old = found->second.id;
  Expected<void> done;
  if (others == others_.end()) {
    done = fib_.remove(prefix);
    best_.erase(found);
    count(prefix, -1);
  } else {
    const auto next = std::min_element(others->second.begin(), others->second.end(),
                                       [](const Candidate& a, const Candidate& b) { return a.metric < b.metric; });
    done = fib_.add(prefix, next->id);
    found->second = *next;
    others->second.erase(next);
    if (others->second.empty()) {
      others_.erase(others);
    }
  }
  adjacencies_.release(old);
  return done;
}

Expected<void> RouteTable::add_neighbour(PortIndex port, const packet::IpAddress& address,
                                         const packet::MacAddress& mac) {
  const std::lock_guard lock(mutex_);
  if (port >= mtu_.size()) {
    return make_error("neighbour " + address.str() + ": there is no port number " + std::to_string(port));
  }
  const NeighbourKey key{address, port};
  const auto [known, is_new] = neighbours_.try_emplace(key);
  neighbour_count_.store(neighbours_.size(), std::memory_order_relaxed);
  known->second.mac = mac;
  adjacencies_.set_mac(port, address, mac);  // for gateways, whatever becomes of the host route
  return is_new || waiting_.contains(key) ? judge(key, known->second, address.bits()) : Expected<void>();
}

Expected<void> RouteTable::remove_neighbour(PortIndex port, const packet::IpAddress& address) {
  const std::lock_guard lock(mutex_);
  const auto known = neighbours_.find({address, port});
  if (known == neighbours_.end()) {
    return make_error("there is no neighbour " + address.str() + " on port " + std::to_string(port));
  }
  adjacencies_.clear_mac(port, address);
  Expected<void> done = take_host_route(known->first, known->second);
  neighbours_.erase(known);
  neighbour_count_.store(neighbours_.size(), std::memory_order_relaxed);
  judge_waiting(address.family);
  return done;
}

RouteTable::Routes::const_iterator RouteTable::longest_match(const packet::IpAddress& address, unsigned from) const {
  const auto& there = lengths_[family_index(address)];
  for (unsigned length = from + 1; length-- != 0;) {
    if (there[length] == 0) {
      continue;
    }
    if (const auto found = best_.find(packet::IpPrefix::of(address, length)); found != best_.end()) {
      return found;
    }
  }
  return best_.end();
}

Expected<void> RouteTable::judge(const NeighbourKey& key, Neighbour& neighbour, unsigned from) {
  const auto route = longest_match(key.address, from);
  if (route == best_.end()) {
    neighbour.decided_by = -1;
    return take_host_route(key, neighbour);
  }
  neighbour.decided_by = route->first.length;
  const std::vector<NextHop> hops = adjacencies_.next_hops(route->second.id);
  const bool on_its_link = hops.size() == 1 && hops[0].port == key.port && hops[0].gateway.empty();
  return on_its_link ? put_host_route(key, neighbour) : take_host_route(key, neighbour);
}

void RouteTable::judge_inside(const packet::IpPrefix& prefix) {
  for (auto next = neighbours_.lower_bound({prefix.address, 0});
       next != neighbours_.end() && prefix.contains(next->first.address); ++next) {
    if (prefix.length >= next->second.decided_by) {
      (void)judge(next->first, next->second, prefix.length);  // what finds no capacity waits for it
    }
  }
}

void RouteTable::judge_waiting(std::uint8_t family) {
  for (auto next = waiting_.lower_bound({{family, {}}, 0}); next != waiting_.end() && next->address.family == family;) {
    const NeighbourKey key = *next++;  // judged, it may leave the set
    if (!judge(key, neighbours_.at(key), key.address.bits())) {
      return;
    }
  }
}

Expected<void> RouteTable::put_host_route(const NeighbourKey& key, Neighbour& neighbour) {
  const packet::IpPrefix host = packet::IpPrefix::host(key.address);
  if (!neighbour.id) {
    const auto id = adjacencies_.hold(key.port, key.address);
    if (!id) {
      waiting_.insert(key);
      return tl::unexpected(id.error());
    }
    neighbour.id = *id;
  }
  // A route for the host itself may have been written there meanwhile, or the neighbour of another port.
  if (fib_.find(host) != *neighbour.id) {
    if (auto added = fib_.add(host, *neighbour.id); !added) {
      adjacencies_.release(*std::exchange(neighbour.id, std::nullopt));
      waiting_.insert(key);
      return added;
    }
  }
  waiting_.erase(key);
  return {};
}

Expected<void> RouteTable::take_host_route(const NeighbourKey& key, Neighbour& neighbour) {
  waiting_.erase(key);
  if (!neighbour.id) {
    return {};
  }
  const packet::IpPrefix host = packet::IpPrefix::host(key.address);
  Expected<void> done;
  if (fib_.find(host) == *neighbour.id) {  // otherwise something else is there by now
    const auto route = best_.find(host);
    done = route == best_.end() ? fib_.remove(host) : fib_.add(host, route->second.id);
  }
  adjacencies_.release(*std::exchange(neighbour.id, std::nullopt));
  return done;
}

void RouteTable::set_link(PortIndex port, bool up, std::uint32_t mtu) {
  const std::lock_guard lock(mutex_);
  if (port < mtu_.size()) {
    mtu_[port].store(mtu, std::memory_order_relaxed);
    up_[port] = up;
    refresh_link(port);
  }
}

void RouteTable::set_carrier(PortIndex port, bool up) {
  const std::lock_guard lock(mutex_);
  if (port < mtu_.size()) {
    carrier_[port] = up;
    refresh_link(port);
  }
}

void RouteTable::set_ingress(PortIndex port, const PortIngress& ingress) {
  const std::lock_guard lock(mutex_);
  ingress_.set(port, ingress);
}

void RouteTable::set_source(std::optional<PortIndex> port, int family, const packet::IpAddress& address) {
  const std::lock_guard lock(mutex_);
  if (!port || *port < mtu_.size()) {
    sources_.set(port, family, address);
  }
}

void RouteTable::refresh_link(PortIndex port) {
  const std::uint32_t mtu = mtu_[port].load(std::memory_order_relaxed);
  carries_[port].store(up_[port] && carrier_[port] ? mtu : 0, std::memory_order_relaxed);
}

void RouteTable::count(const packet::IpPrefix& prefix, int change) {
  const std::size_t family = family_index(prefix.address);
  lengths_[family][prefix.length] += static_cast<std::uint32_t>(change);
  sizes_[family].fetch_add(static_cast<std::size_t>(change), std::memory_order_relaxed);
}

Route RouteTable::route_of(const packet::IpPrefix& prefix, const Candidate& candidate) const {
  return {prefix, candidate.kind, adjacencies_.next_hops(candidate.id), candidate.metric, candidate.protocol};
}

std::vector<Route> RouteTable::list(const std::function<bool(const packet::IpPrefix&)>& wanted, std::size_t limit,
                                    std::uint64_t& matching) const {
  const std::lock_guard lock(mutex_);
  using Entry = decltype(best_)::value_type;
  std::vector<const Entry*> entries;
  for (const Entry& entry : best_) {
    if (wanted(entry.first)) {
      entries.push_back(&entry);
    }
  }
  matching = entries.size();
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(std::min(limit, entries.size()));
  std::partial_sort(entries.begin(), end, entries.end(),
                    [](const Entry* a, const Entry* b) { return a->first < b->first; });
  std::vector<Route> routes;
  for (auto entry = entries.begin(); entry != end; ++entry) {
    routes.push_back(route_of((*entry)->first, (*entry)->second));
  }
  return routes;
}

std::vector<NeighbourRow> RouteTable::neighbours() const {
  const std::lock_guard lock(mutex_);
  std::vector<NeighbourRow> rows;
  for (const auto& [key, neighbour] : neighbours_) {
    rows.push_back({key.port, key.address, neighbour.mac});
  }
  return rows;
}

std::vector<NextHop> RouteTable::next_hops(lookup::NextHopId id) const {
  const std::lock_guard lock(mutex_);
  return adjacencies_.next_hops(id);
}

std::vector<AdjacencyTable::Gateway> RouteTable::gateways() const {
  const std::lock_guard lock(mutex_);
  return adjacencies_.gateways();
}

bool RouteTable::is_own(std::uint8_t family, const std::uint8_t* address) const {
  lookup::NextHopId id{};
  if (family == 4) {
    std::uint32_t number;
    std::memcpy(&number, address, sizeof number);
    number = packet::be32(number);
    fib_.lookup4(&number, &id, 1);
  } else {
    std::uint8_t bytes[1][16];
    std::memcpy(bytes[0], address, sizeof bytes[0]);
    fib_.lookup6(bytes, &id, 1);
  }
  return adjacencies_.at(id).kind() == AdjacencyKind::local && id != AdjacencyTable::elsewhere_id;
}

}  // namespace sluice::function
