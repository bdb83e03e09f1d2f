#include "function/route/on_link_prefixes.h"

namespace sluice::function {

bool OnLinkPrefixes::set(const packet::IpPrefix& prefix, std::uint32_t metric, std::optional<PortIndex> port) {
  if (port) {
    const auto [known, is_new] = by_length_[prefix.length].try_emplace({prefix, metric}, *port);
    return is_new || std::exchange(known->second, *port) != *port;
  }
  const auto links = by_length_.find(prefix.length);
  if (links == by_length_.end() || links->second.erase({prefix, metric}) == 0) {
    return false;
  }
  if (links->second.empty()) {
    by_length_.erase(links);
  }
  return true;
}

std::optional<PortIndex> OnLinkPrefixes::port_of(const packet::IpAddress& address) const {
  for (const auto& [length, links] : by_length_) {
    const auto prefix = packet::IpPrefix::of(address, length);
    if (const auto lowest = links.lower_bound({prefix, 0}); lowest != links.end() && lowest->first.first == prefix) {
      return lowest->second == elsewhere ? std::nullopt : std::optional(lowest->second);
    }
  }
  return std::nullopt;
}

}  // namespace sluice::function
