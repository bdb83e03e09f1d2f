// A set of IPv4 and IPv6 addresses, as rules write them: any, 10.0.0.0/8, !192.168.1.1, [a,b,!c], a-b.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"

namespace sluice::match {

struct AddressRange {
  packet::IpAddress first;  // of the same family as `last`, and not above it
  packet::IpAddress last;
  bool operator==(const AddressRange&) const = default;
};

// Sorted, disjoint, not adjacent ranges: IPv4 first. Value type. contains(): O(log ranges).
class AddressSet {
 public:
  AddressSet() = default;
  // In any order, overlapping or not.
  explicit AddressSet(std::vector<AddressRange> ranges);
  static AddressSet any();

  bool is_any() const { return any_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(const packet::IpAddress& address) const;
  std::span<const AddressRange> ranges() const { return ranges_; }

  // How much of its family it is, 1 all: of both families the larger share.
  double share() const;

  AddressSet complement() const;
  AddressSet intersection(const AddressSet& other) const;
  void add(const AddressSet& other);
  bool operator==(const AddressSet& other) const { return ranges_ == other.ranges_; }

 private:
  void note_any();
  std::vector<AddressRange> ranges_;
  bool any_ = false;
};

// One address, prefix (/24 or /255.255.255.0; host bits do not matter), range a-b, or "any"; no groups, no variables.
Expected<AddressSet> parse_address(std::string_view text);

}  // namespace sluice::match
