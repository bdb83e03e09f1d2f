#include "control/netlink/nexthop_table.h"

#include <algorithm>

namespace sluice::control::netlink {

void NexthopTable::apply(const NexthopMessage& message) {
  const auto found = objects_.find(message.id);
  if (message.removed) {
    if (found == objects_.end() || in_use(message.id)) return;
    objects_.erase(found);
    forget_targets();
    changed_ |= affects_routes(message.id);
    return;
  }
  const Object object{message.blackhole, message.fdb, message.hop, message.group, generation_, false, {}};
  if (found == objects_.end()) {
    objects_.emplace(message.id, object);
    // Members may be named before they are known, and routes before both, only when messages were lost.
    if (asked_for_unknown_) forget_targets();
    changed_ |= asked_for_unknown_;
    return;
  }
  Object& known = found->second;
  known.generation = generation_;
  if (known.blackhole == object.blackhole && known.fdb == object.fdb && known.hop == object.hop &&
      known.group == object.group) {
    return;
  }
  known = object;
  forget_targets();
  changed_ |= affects_routes(message.id);
}

bool NexthopTable::affects_routes(std::uint32_t id) const {
  if (in_use(id)) return true;
  return std::ranges::any_of(objects_, [&](const auto& entry) {
    const auto& group = entry.second.group;
    return in_use(entry.first) && std::ranges::any_of(group, [&](const auto& member) { return member.id == id; });
  });
}

void NexthopTable::retain(std::uint32_t id) {
  if (id != 0) ++users_[id];
}

void NexthopTable::release(std::uint32_t id) {
  const auto found = users_.find(id);
  if (found != users_.end() && --found->second == 0) users_.erase(found);
}

void NexthopTable::end_dump() {
  const auto gone = std::erase_if(objects_, [&](const auto& entry) { return entry.second.generation != generation_; });
  if (gone != 0) {
    forget_targets();
    changed_ = true;
  }
}

void NexthopTable::forget_targets() {
  for (auto& [id, object] : objects_) object.is_resolved = false;
}

std::vector<Hop> NexthopTable::hops_of(const Object& object) {
  if (object.group.empty()) return {object.hop};
  std::vector<Hop> hops;
  for (const auto& member : object.group) {
    const auto found = objects_.find(member.id);
    if (found == objects_.end()) asked_for_unknown_ = true;
    if (found == objects_.end() || found->second.blackhole) continue;
    Hop hop = found->second.hop;
    hop.weight = member.weight;
    hops.push_back(hop);
  }
  return hops;
}

std::optional<NexthopTable::Target> NexthopTable::resolve(std::uint32_t id) {
  const auto found = objects_.find(id);
  if (found == objects_.end() || found->second.fdb) {
    asked_for_unknown_ = true;
    return std::nullopt;
  }
  Object& object = found->second;
  if (!object.is_resolved) {
    // The kernel allows a group of one blackhole.
    const auto member = object.group.size() == 1 ? objects_.find(object.group[0].id) : found;
    object.target.blackhole = member != objects_.end() && member->second.blackhole;
    object.target.hops = object.target.blackhole ? no_hops : hops_.intern(hops_of(object));
    object.is_resolved = true;
  }
  return object.target;
}

void NexthopTable::mark(std::vector<bool>& hop_sets) const {
  for (const auto& [id, object] : objects_) {
    if (object.is_resolved) hop_sets[object.target.hops] = true;
  }
}

}  // namespace sluice::control::netlink
