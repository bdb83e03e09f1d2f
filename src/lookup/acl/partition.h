// A space of numbers (addresses, ports) cut into classes: two numbers are of one class when the same of the given
// intervals contain them. Control path only.
//
// Cost: sorting, and for each distinct interval the segments that it spans; of prefixes, which only nest, 33 (IPv6:
// 129) times the segments at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "packet/ip_address.h"

namespace sluice::lookup::acl {

// An address as a number, the first byte highest. (IPv4: 32 bits.)
using Number = unsigned __int128;

struct Interval {
  Number first = 0;
  Number last = 0;
  bool operator==(const Interval&) const = default;
};

// All of the family's addresses for a prefix of none.
Interval interval_of(const packet::IpPrefix& prefix, int family);

struct Partition {
  // The space is 0 … last.
  Partition(std::span<const Interval> intervals, Number last);

  // Segments in ascending order: segment i begins at starts[i], the first at 0; all of it is of class_of[i].
  std::vector<Number> starts;
  std::vector<std::uint32_t> class_of;
  std::uint32_t classes = 0;

  // The classes that make up an interval, by its place in `intervals`.
  std::span<const std::uint32_t> covered(std::size_t interval) const { return covered_[distinct_[interval]]; }

 private:
  void cut(std::span<const Interval> distinct, Number last);
  void refine(std::span<const Interval> distinct);
  void collect(std::span<const Interval> distinct);
  std::size_t segment_of(Number number) const;
  // First and last but one segment of an interval.
  std::pair<std::size_t, std::size_t> segments(const Interval& interval) const;

  std::vector<std::uint32_t> distinct_;  // by interval
  std::vector<std::vector<std::uint32_t>> covered_;
};

}  // namespace sluice::lookup::acl
