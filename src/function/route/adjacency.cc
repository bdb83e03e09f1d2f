#include "function/route/adjacency.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice::function {
namespace {

// Why there is none: the last words of an error of new_id() and new_group().
std::string advice(bool some_rest, const char* what_to_do) {
  return some_rest ? "; some were freed just now and can be used in a moment: try again"
                   : std::string(", the most that fit: ") + what_to_do;
}

using Members = std::vector<std::pair<lookup::NextHopId, std::uint8_t>>;

std::uint32_t weight_of(const Members::value_type& member) {
  return std::max<std::uint32_t>(1, member.second);
}

// How many slots each member gets: Webster's method, but that everyone has one to begin with; ties to the first.
std::vector<std::uint32_t> shares_of(const Members& members) {
  std::vector<std::uint32_t> shares(members.size(), 1);
  for (std::size_t left = AdjacencyTable::group_slots - members.size(); left != 0; --left) {
    std::size_t next = 0;
    for (std::size_t i = 1; i < members.size(); ++i) {
      if (weight_of(members[i]) * (2 * shares[next] + 1) > weight_of(members[next]) * (2 * shares[i] + 1)) {
        next = i;
      }
    }
    ++shares[next];
  }
  return shares;
}

}  // namespace

Adjacency Adjacency::of(AdjacencyKind kind, std::uint16_t port, const packet::MacAddress& mac, bool own) {
  std::uint64_t word = static_cast<std::uint64_t>(kind) << 56 | static_cast<std::uint64_t>(own) << 55 |
                       static_cast<std::uint64_t>(port & 0x7f) << 48;
  for (unsigned i = 0; i < mac.bytes.size(); ++i) {
    word |= static_cast<std::uint64_t>(mac.bytes[i]) << (8 * i);
  }
  return {word};
}

Adjacency Adjacency::of_group(std::uint32_t index) {
  return {static_cast<std::uint64_t>(AdjacencyKind::group) << 56 | index};
}

AdjacencyTable::AdjacencyTable(std::uint32_t max_ids, std::uint32_t max_groups, Settled settled)
    : words_(new std::atomic<std::uint64_t>[max_ids]),
      groups_(max_groups),
      max_ids_(max_ids),
      settled_(std::move(settled)) {
  for (std::uint32_t id = 0; id < max_ids; ++id) {
    store(id, Adjacency::of(AdjacencyKind::no_route));
  }
  store(local_id, Adjacency::of(AdjacencyKind::local));
  store(blackhole_id, Adjacency::of(AdjacencyKind::blackhole));
  store(unreachable_id, Adjacency::of(AdjacencyKind::unreachable));
  store(elsewhere_id, Adjacency::of(AdjacencyKind::local));
}

Expected<lookup::NextHopId> AdjacencyTable::new_id() {
  if (!resting_ids_.empty() && resting_ids_.front().since <= settled_()) {
    const RestingId rested = resting_ids_.front();
    resting_ids_.pop_front();
    if (rested.key) {
      resting_keys_.erase(*rested.key);
    }
    return rested.id;
  }
  if (next_id_ == max_ids_) {
    return make_error("the router has " + std::to_string(entries_.size()) +
                      " next hops, neighbours and ECMP groups, of " + std::to_string(max_ids_ - elsewhere_id - 1) +
                      advice(!resting_ids_.empty(),
                             "name fewer gateways, or let the kernel keep fewer neighbours (sysctl "
                             "net.ipv4.neigh.default.gc_thresh3)"));
  }
  return next_id_++;
}

Expected<std::uint32_t> AdjacencyTable::new_group() {
  if (!resting_groups_.empty() && resting_groups_.front().since <= settled_()) {
    const std::uint32_t group = resting_groups_.front().group;
    resting_groups_.pop_front();
    return group;
  }
  if (next_group_ == groups_.size()) {
    return make_error("the router has " + std::to_string(by_members_.size()) + " ECMP groups, of " +
                      std::to_string(groups_.size()) +
                      advice(!resting_groups_.empty(),
                             "let routes share their sets of next hops, or take fewer paths (FRR: maximum-paths; "
                             "BIRD: merge paths)"));
  }
  return next_group_++;
}

Expected<lookup::NextHopId> AdjacencyTable::hold(PortIndex port, const packet::IpAddress& address) {
  const Key key{port, address};
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    ++entries_[found->second].references;
    return found->second;
  }
  Expected<lookup::NextHopId> id;
  if (const auto back = resting_keys_.find(key); back != resting_keys_.end()) {
    id = back->second->id;
    resting_ids_.erase(back->second);
    resting_keys_.erase(back);
  } else {
    id = new_id();
  }
  if (!id) {
    return id;
  }
  entries_[*id] = {key, {}, {}, 0, 1, port == any_port ? on_link_.port_of(address).value_or(any_port) : port};
  by_key_[key] = *id;
  refresh(*id);
  return id;
}

Expected<lookup::NextHopId> AdjacencyTable::hold_group(
    const std::vector<std::pair<lookup::NextHopId, std::uint8_t>>& members) {
  if (const auto found = by_members_.find(members); found != by_members_.end()) {
    ++entries_[found->second].references;
    return found->second;
  }
  if (members.size() > group_slots) {
    return make_error("a route has " + std::to_string(members.size()) + " next hops, more than the " +
                      std::to_string(group_slots) + " that one can have: take fewer paths");
  }
  const auto taken = new_group();
  if (!taken) {
    return tl::unexpected(taken.error());
  }
  const std::uint32_t group = *taken;
  auto id = new_id();
  if (!id) {
    resting_groups_.push_front({group, Clock::time_point::min()});  // nobody has seen it
    return id;
  }
  const std::vector<std::uint32_t> shares = shares_of(members);
  Entry entry{{}, {}, {}, group, 1, any_port};
  std::uint32_t slot = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [member, weight] = members[i];
    for (const std::uint32_t end = slot + shares[i]; slot < end; ++slot) {
      groups_[group][slot].store(member, std::memory_order_relaxed);
    }
    ++entries_[member].references;
    entry.members.push_back(member);
    entry.weights.push_back(weight);
  }
  entries_[*id] = std::move(entry);
  by_members_[members] = *id;
  store(*id, Adjacency::of_group(group));
  return id;
}

void AdjacencyTable::release(lookup::NextHopId id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || --found->second.references != 0) {
    return;
  }
  Entry entry = std::move(found->second);
  entries_.erase(found);
  // The word stays what it was until the id is given anew: batches under way, and a GPU that has not heard yet, still
  // send frames by it, as the route that named it did.
  const Clock::time_point now = Clock::now();
  if (entry.members.empty()) {
    by_key_.erase(entry.key);
    resting_keys_[entry.key] = resting_ids_.insert(resting_ids_.end(), {id, now, entry.key});
    return;
  }
  resting_ids_.push_back({id, now, std::nullopt});
  std::erase_if(by_members_, [id](const auto& item) { return item.second == id; });
  resting_groups_.push_back({entry.group, now});
  for (const lookup::NextHopId member : entry.members) {
    release(member);
  }
}

void AdjacencyTable::refresh(lookup::NextHopId id) {
  const Entry& entry = entries_[id];
  const auto mac = macs_.find({entry.bound, entry.key.address});
  const bool own = entry.key.port == any_port;
  const AdjacencyKind unknown = own ? AdjacencyKind::awaited : AdjacencyKind::unresolved;
  store(id, mac == macs_.end() ? Adjacency::of(unknown, entry.bound, {}, own)
                               : Adjacency::of(AdjacencyKind::forward, entry.bound, mac->second, own));
}

void AdjacencyTable::set_mac(PortIndex port, const packet::IpAddress& address, const packet::MacAddress& mac) {
  macs_[{port, address}] = mac;
  for (const PortIndex given : {port, any_port}) {
    if (const auto found = by_key_.find({given, address}); found != by_key_.end()) {
      refresh(found->second);
    }
  }
}

void AdjacencyTable::clear_mac(PortIndex port, const packet::IpAddress& address) {
  macs_.erase({port, address});
  for (const PortIndex given : {port, any_port}) {
    if (const auto found = by_key_.find({given, address}); found != by_key_.end()) {
      refresh(found->second);
    }
  }
}

void AdjacencyTable::set_on_link(const packet::IpPrefix& prefix, std::uint32_t metric, std::optional<PortIndex> port) {
  if (!on_link_.set(prefix, metric, port)) {
    return;
  }
  // By address those inside the prefix lie side by side, and no port is above any_port.
  for (auto next = by_key_.lower_bound({any_port, prefix.address});
       next != by_key_.end() && prefix.contains(next->first.address); ++next) {
    const PortIndex now = on_link_.port_of(next->first.address).value_or(any_port);
    if (std::exchange(entries_.at(next->second).bound, now) != now) {
      refresh(next->second);
    }
  }
}

std::vector<NextHop> AdjacencyTable::next_hops(lookup::NextHopId id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return {};
  }
  const Entry& entry = found->second;
  if (entry.members.empty()) {
    return {{entry.bound, entry.key.address, 1}};
  }
  std::vector<NextHop> all;
  for (std::size_t i = 0; i < entry.members.size(); ++i) {
    NextHop hop = next_hops(entry.members[i]).at(0);
    hop.weight = entry.weights[i];
    all.push_back(hop);
  }
  return all;
}

std::vector<AdjacencyTable::Gateway> AdjacencyTable::gateways() const {
  std::vector<Gateway> all;
  for (const auto& [id, entry] : entries_) {
    if (entry.members.empty() && entry.bound != any_port && !entry.key.address.empty()) {
      all.push_back({entry.bound, entry.key.address, at(id).kind() == AdjacencyKind::forward});
    }
  }
  return all;
}

}  // namespace sluice::function
