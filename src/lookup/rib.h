// The set of prefixes of one address family: a view of the RIB inside an rte_fib or rte_fib6, with one set of calls for
// both.
//
// The RIB is the only store of prefixes; the tables of the CPU and of the GPU are derived from it.
// Thread-safety: none (the control thread). Cost: a walk down a path-compressed binary tree, under a microsecond at 600
// K prefixes; for_each_below is linear in the prefixes it names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lookup/next_hop.h"
#include "packet/ip_address.h"

struct rte_rib;
struct rte_rib6;

namespace sluice::lookup {

class Rib {
 public:
  explicit Rib(rte_rib* rib) : rib4_(rib) {}
  explicit Rib(rte_rib6* rib) : rib6_(rib) {}

  int family() const { return rib4_ != nullptr ? 4 : 6; }
  // The stored value of exactly this prefix.
  std::optional<std::uint64_t> find(const packet::IpPrefix& prefix) const;
  // The stored value of the longest prefix that contains this one and is shorter.
  std::optional<std::uint64_t> cover(const packet::IpPrefix& prefix) const;
  // Whether a prefix longer than `length` lies in the first `length` bits of `address`.
  bool has_longer(const packet::IpAddress& address, unsigned length) const;
  // The prefixes inside `prefix` that no other prefix inside it contains, in ascending order.
  void for_each_below(const packet::IpPrefix& prefix, const std::function<void(const packet::IpPrefix&)>& visit) const;
  // All prefixes with their stored values, in no order.
  void for_each(const std::function<void(const packet::IpPrefix&, std::uint64_t)>& visit) const;

 private:
  rte_rib* rib4_ = nullptr;
  rte_rib6* rib6_ = nullptr;
};

}  // namespace sluice::lookup
