#include "control/netlink/hop_table.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace sluice::control::netlink {

HopTable::HopTable() {
  sets_.emplace_back();
  index_.emplace(std::vector<Hop>{}, no_hops);
}

std::size_t HopTable::Hash::operator()(const std::vector<Hop>& hops) const {
  std::size_t hash = hops.size();
  for (const Hop& hop : hops) {
    const std::string_view gateway(reinterpret_cast<const char*>(hop.gateway.bytes.data()), hop.gateway.bytes.size());
    hash = hash * 0x9e3779b97f4a7c15ULL + std::hash<std::string_view>{}(gateway) +
           static_cast<std::size_t>(hop.ifindex) + (std::size_t{hop.weight} << 32) + (hop.dead ? 1 : 0);
  }
  return hash;
}

HopSetId HopTable::intern(std::span<const Hop> hops) {
  std::vector<Hop> key(hops.begin(), hops.end());
  if (const auto found = index_.find(key); found != index_.end()) return found->second;
  HopSetId id = static_cast<HopSetId>(sets_.size());
  if (free_.empty()) {
    sets_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  sets_[id] = {key, resolve(key), false};
  shortened_ += sets_[id].resolved.shortened ? 1 : 0;
  index_.emplace(std::move(key), id);
  return id;
}

// The kernel forwards what is not wholly ours: a share of the flows through another interface cannot be split off here.
Resolved HopTable::resolve(const std::vector<Hop>& hops) const {
  Resolved result;
  std::uint32_t heaviest = 1;
  for (const Hop& hop : hops) heaviest = std::max(heaviest, hop.dead ? 1 : hop.weight);
  bool ours = true;
  for (const Hop& hop : hops) {
    if (hop.dead) continue;
    result.usable = true;
    const auto twin = port(hop.ifindex);
    if (!twin || hop.encapsulated) {
      ours = false;
      continue;
    }
    const std::uint64_t weight = heaviest <= 255 ? hop.weight : std::uint64_t{hop.weight} * 255 / heaviest;
    result.next_hops.push_back({*twin, hop.gateway, static_cast<std::uint8_t>(std::max<std::uint64_t>(weight, 1))});
  }
  if (ours && result.usable) {
    result.kind = function::RouteKind::unicast;
    result.shortened = result.next_hops.size() > function::most_next_hops;
    if (result.shortened) result.next_hops.resize(function::most_next_hops);
  } else {
    result.next_hops.clear();
  }
  return result;
}

std::optional<function::PortIndex> HopTable::port(int ifindex) const {
  const auto found = ports_.find(ifindex);
  return found == ports_.end() ? std::nullopt : std::optional(found->second);
}

void HopTable::set_port(int ifindex, std::optional<function::PortIndex> port) {
  if (this->port(ifindex) == port) return;
  if (port) {
    ports_[ifindex] = *port;
  } else {
    ports_.erase(ifindex);
  }
  for (Set& set : sets_) {
    Resolved now = resolve(set.hops);
    if (now == set.resolved) continue;
    shortened_ += now.shortened && !set.resolved.shortened ? 1 : 0;
    set.resolved = std::move(now);
    set.changed = any_changed_ = true;
  }
}

void HopTable::settled() {
  for (Set& set : sets_) set.changed = false;
  any_changed_ = false;
}

void HopTable::keep(const std::vector<bool>& marks) {
  for (HopSetId id = 1; id < sets_.size(); ++id) {
    if (marks[id] || sets_[id].hops.empty()) continue;
    index_.erase(sets_[id].hops);
    sets_[id] = {};
    free_.push_back(id);
  }
}

}  // namespace sluice::control::netlink
