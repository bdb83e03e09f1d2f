#include "function/vxlan/remote_ids.h"

#include <algorithm>
#include <vector>

namespace sluice::function {

bool RemoteIds::has_capacity(const Addresses& used) const {
  const auto added = std::ranges::count_if(used, [&](const packet::IpAddress& one) { return !ids_.contains(one); });
  return ids_.size() + static_cast<std::size_t>(added) <= most;
}

void RemoteIds::name(const Addresses& used) {
  resting_.clear();
  std::vector<bool> taken(most);
  for (const auto& [address, id] : ids_) {
    taken[id] = true;
    if (!used.contains(address)) resting_.insert(address);
  }
  auto free = taken.begin();
  for (const packet::IpAddress& address : used) {
    if (ids_.contains(address)) continue;
    free = std::find(free, taken.end(), false);
    *free = true;
    ids_.emplace(address, static_cast<RemoteId>(free - taken.begin()));
  }
}

std::set<RemoteId> RemoteIds::resting() const {
  std::set<RemoteId> numbers;
  for (const packet::IpAddress& address : resting_) numbers.insert(ids_.at(address));
  return numbers;
}

void RemoteIds::release() {
  for (const packet::IpAddress& address : resting_) ids_.erase(address);
  resting_.clear();
}

}  // namespace sluice::function
