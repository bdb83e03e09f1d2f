#include "lookup/acl/partition.h"

#include <algorithm>

namespace sluice::lookup::acl {

namespace {

bool before(const Interval& a, const Interval& b) {
  return a.first != b.first ? a.first < b.first : a.last < b.last;
}

}  // namespace

Interval interval_of(const packet::IpPrefix& prefix, int family) {
  const unsigned bits = family == 4 ? 32 : 128;
  const Number all = bits == 32 ? Number{0xffff'ffff} : ~Number{0};
  if (prefix.address.empty() || prefix.length == 0) {
    return {0, all};
  }
  Number first = 0;
  for (unsigned byte = 0; byte < bits / 8; ++byte) {
    first = first << 8 | prefix.address.bytes[byte];
  }
  return {first, prefix.length == bits ? first : first | (all >> prefix.length)};
}

Partition::Partition(std::span<const Interval> intervals, Number last) {
  std::vector<Interval> distinct(intervals.begin(), intervals.end());
  std::sort(distinct.begin(), distinct.end(), before);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const Interval& interval : intervals) {
    distinct_.push_back(static_cast<std::uint32_t>(
        std::lower_bound(distinct.begin(), distinct.end(), interval, before) - distinct.begin()));
  }
  cut(distinct, last);
  refine(distinct);
  collect(distinct);
}

void Partition::cut(std::span<const Interval> distinct, Number last) {
  starts.push_back(0);
  for (const Interval& interval : distinct) {
    starts.push_back(interval.first);
    if (interval.last != last) {
      starts.push_back(interval.last + 1);
    }
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
}

std::size_t Partition::segment_of(Number number) const {
  return static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), number) - starts.begin()) - 1;
}

std::pair<std::size_t, std::size_t> Partition::segments(const Interval& interval) const {
  return {segment_of(interval.first), segment_of(interval.last) + 1};
}

// Each interval splits the classes that lie partly in it: those of its segments become new ones, all of one old class
// the same new one.
void Partition::refine(std::span<const Interval> distinct) {
  std::vector<std::uint32_t> state(starts.size(), 0);
  std::vector<std::uint32_t> split{0};
  std::vector<std::size_t> split_by{0};  // by which interval, counted from 1
  for (std::size_t i = 0; i < distinct.size(); ++i) {
    const auto [from, to] = segments(distinct[i]);
    for (std::size_t s = from; s < to; ++s) {
      const std::uint32_t old = state[s];
      if (split_by[old] != i + 1) {
        split_by[old] = i + 1;
        split[old] = static_cast<std::uint32_t>(split.size());
        split.push_back(0);
        split_by.push_back(0);
      }
      state[s] = split[old];
    }
  }
  // Of the states on the way only those that are left get a number, in the order of their first segments.
  std::vector<std::uint32_t> number(split.size(), 0);
  class_of.resize(starts.size());
  for (std::size_t s = 0; s < starts.size(); ++s) {
    std::uint32_t& at = number[state[s]];
    at = at != 0 ? at : ++classes;
    class_of[s] = at - 1;
  }
}

void Partition::collect(std::span<const Interval> distinct) {
  std::vector<std::size_t> seen(classes, 0);  // by which interval, counted from 1
  covered_.resize(distinct.size());
  for (std::size_t i = 0; i < distinct.size(); ++i) {
    const auto [from, to] = segments(distinct[i]);
    for (std::size_t s = from; s < to; ++s) {
      if (seen[class_of[s]] != i + 1) {
        seen[class_of[s]] = i + 1;
        covered_[i].push_back(class_of[s]);
      }
    }
  }
}

}  // namespace sluice::lookup::acl
