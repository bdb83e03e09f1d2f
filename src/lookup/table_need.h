// What a list of routes needs of a Fib's tables, counted by the Fib's own rules and without one: for a check before
// anything is made. Each prefix is to be added once. Cost: a hash look-up for each 8 bits beyond a /24.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "packet/ip_address.h"

namespace sluice::lookup {

class TableNeed {
 public:
  void add(const packet::IpPrefix& prefix);
  std::uint32_t routes(int family) const { return routes_[family == 6]; }
  // For prefixes longer than /24 (fib.h).
  std::uint32_t groups(int family) const { return groups_[family == 6]; }
  // The least max_ipv4 or max_ipv6 that has capacity for all of them.
  std::uint32_t max_routes(int family) const;
  bool fits(int family, std::uint32_t max_routes) const { return this->max_routes(family) <= max_routes; }

 private:
  struct Hash {
    std::size_t operator()(const packet::IpPrefix& prefix) const { return hash_of(prefix); }
  };
  std::uint32_t routes_[2] = {};
  std::uint32_t groups_[2] = {};
  std::unordered_set<packet::IpPrefix, Hash> inner_;  // the bits that lead to each group
};

}  // namespace sluice::lookup
