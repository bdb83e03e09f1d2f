// A set of TCP or UDP ports, as rules write them: any, 80, 1024:, :1023, 6000:6010, !80, [80,443,!8080].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::match {

struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool operator==(const PortRange&) const = default;
};

// Sorted, disjoint, not adjacent ranges. Value type. contains(): O(log ranges).
class PortSet {
 public:
  PortSet() = default;
  // In any order, overlapping or not.
  explicit PortSet(std::vector<PortRange> ranges);
  static PortSet any() { return PortSet({{0, 65535}}); }

  bool is_any() const { return ranges_.size() == 1 && ranges_[0] == PortRange{0, 65535}; }
  bool empty() const { return ranges_.empty(); }
  bool contains(std::uint16_t port) const;
  // Ports that it has: O(ranges).
  std::size_t size() const;
  std::span<const PortRange> ranges() const { return ranges_; }

  PortSet complement() const;
  PortSet intersection(const PortSet& other) const;
  void add(const PortSet& other);
  bool operator==(const PortSet&) const = default;

 private:
  std::vector<PortRange> ranges_;
};

// One port, a range with ':', or "any"; no groups, no variables.
Expected<PortSet> parse_port(std::string_view text);

}  // namespace sluice::match
