#include "ipsec/path_mtus.h"

#include <algorithm>

namespace sluice::ipsec {

bool PathMtus::learn(const Way& way, std::uint32_t mtu, Time now) {
  const std::uint16_t least = way.second.family == 4 ? least_ipv4 : least_ipv6;
  const auto bounded = static_cast<std::uint16_t>(std::clamp<std::uint32_t>(mtu, least, 0xffff));
  Entry& entry = entries_[way];
  const bool is_new = entry.mtu == 0 || bounded < entry.mtu;
  if (!is_new && (bounded > entry.mtu || entry.until - now > kept - renewed)) return false;
  entry = {bounded, now + kept};
  ends_.emplace_back(entry.until, way);
  return is_new;
}

std::uint16_t PathMtus::of(const Way& way) const {
  const auto at = entries_.find(way);
  return at == entries_.end() ? std::uint16_t{0} : at->second.mtu;
}

bool PathMtus::expire(Time now, Way& way) {
  while (!ends_.empty() && ends_.front().first <= now) {
    const auto at = entries_.find(ends_.front().second);
    const bool over = at != entries_.end() && at->second.until <= now;
    ends_.pop_front();
    if (!over) continue;
    way = at->first;
    entries_.erase(at);
    return true;
  }
  return false;
}

}  // namespace sluice::ipsec
