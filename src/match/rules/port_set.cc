#include "match/rules/port_set.h"

#include <algorithm>

#include "base/quote.h"
#include "match/rules/words.h"

namespace sluice::match {

PortSet::PortSet(std::vector<PortRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const PortRange& a, const PortRange& b) { return a.first < b.first; });
  for (const PortRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

bool PortSet::contains(std::uint16_t port) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), port,
                                      [](std::uint16_t p, const PortRange& range) { return p < range.first; });
  return after != ranges_.begin() && port <= std::prev(after)->last;
}

std::size_t PortSet::size() const {
  std::size_t size = 0;
  for (const PortRange& range : ranges_) size += range.last - range.first + std::size_t{1};
  return size;
}

PortSet PortSet::complement() const {
  PortSet others;
  unsigned next = 0;
  for (const PortRange& range : ranges_) {
    if (range.first > next) {
      others.ranges_.push_back({static_cast<std::uint16_t>(next), static_cast<std::uint16_t>(range.first - 1)});
    }
    next = range.last + 1U;
  }
  if (next <= 65535) others.ranges_.push_back({static_cast<std::uint16_t>(next), 65535});
  return others;
}

PortSet PortSet::intersection(const PortSet& other) const {
  PortSet outside = complement();
  outside.add(other.complement());
  return outside.complement();
}

void PortSet::add(const PortSet& other) {
  std::vector<PortRange> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  *this = PortSet(std::move(all));
}

Expected<PortSet> parse_port(std::string_view text) {
  if (lower_case(text) == "any") return PortSet::any();
  const std::size_t colon = text.find(':');
  const std::string_view low = trimmed(text.substr(0, colon));
  const std::string_view high = colon == std::string_view::npos ? low : trimmed(text.substr(colon + 1));
  const auto first = low.empty() && !high.empty() ? 0 : number_of(low);
  const auto last = high.empty() && !low.empty() ? 65535 : number_of(high);
  if (!first || !last || *first < 0 || *last > 65535) {
    return make_error(in_quotes(text) + " is no port: write a number up to 65535, a range A:B, a group [A,B] or any");
  }
  if (*first > *last) {
    return make_error(in_quotes(text) + " is no range of ports: it ends before it begins");
  }
  return PortSet({{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)}});
}

}  // namespace sluice::match
