// Longest-prefix match on the CPU, by DPDK's rte_fib (DIR-24-8) and rte_fib6 (trie of 24, 8, 8, … bits), and the one
// store of routes (their RIBs) that the GPU's tables (trie.h) are derived from.
//
// In: prefixes with the id of a next hop. Out: for an address the id of its longest matching prefix, or no_route.
//
// Threads: one writer (add, remove, attach) at a time, in whose order find() and groups_used() are called too; any
// number of readers (lookup4, lookup6, size4, size6) at the same time, without locks. What a reader may see while the
// writer changes a route: for every address the next hop before or the one after the change. Addresses of the changed
// prefix turn one after the other, not all at once. One exception, which DPDK 22.11 has no means to exclude (its fib
// knows no RCU): when the change takes away the last difference inside a group of 256 addresses, the group is freed at
// once; a reader that loaded the pointer to the group before and reads the group after may get no_route, or the next
// hop of the prefix that the group is given to next. The window lies between two loads of one lookup; the frame that
// falls into it is dropped or sent to another next hop, the following one is right.
//
// Memory comes from DPDK's heap at creation; add and remove allocate nothing. Cost of a lookup: one or two memory
// accesses for IPv4, two to four for IPv6 (a /48); of a change: docs/lookup.md.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "lookup/next_hop.h"
#include "lookup/rib.h"
#include "packet/ip_address.h"

struct rte_fib;
struct rte_fib6;

namespace sluice::lookup {

class Trie;

class Fib {
 public:
  struct Options {
    std::string name = "fib";             // at most 16 characters, unique in the process
    std::uint32_t max_routes4 = 700'000;  // [route] max_ipv4
    std::uint32_t max_routes6 = 250'000;  // [route] max_ipv6
    // Groups of 256 entries (1 KiB each) for prefixes longer than /24; 0: derived from max_routes (docs/lookup.md).
    std::uint32_t groups4 = 0;
    std::uint32_t groups6 = 0;
    int numa_node = -1;  // -1: any
  };
  // How a table of this many routes is sized when groups4 or groups6 is 0; the GPU's tables use the same figure.
  static std::uint32_t default_groups(int family, std::uint32_t max_routes);
  // The fewest max_routes whose default_groups() are `groups`.
  static std::uint32_t routes_for(int family, std::uint32_t groups);
  // The longest prefix that is kept for a route: its own, but a host's for one that reaches the last address (fib.cc).
  static packet::IpPrefix deepest(const packet::IpPrefix& prefix);

  // DPDK heap memory that a family's table of this many routes takes, but for a few percent. Needs no DPDK running.
  static std::uint64_t memory_needed(int family, std::uint32_t max_routes);

  // An Error says how much memory was needed and how much there was.
  static Expected<std::unique_ptr<Fib>> create(const Options& options);
  ~Fib();
  // For a program that ends: leaves the memory to the EAL, which gives it back without clearing it first.
  void leave_to_eal() { fib4_ = nullptr, fib6_ = nullptr; }
  Fib(const Fib&) = delete;
  Fib& operator=(const Fib&) = delete;

  // Adds the route, or gives an existing one another next hop. An error (the table is full, or the id is not one)
  // changes nothing.
  Expected<void> add(const packet::IpPrefix& prefix, NextHopId next_hop);
  // Removing a prefix that is not there is an error.
  Expected<void> remove(const packet::IpPrefix& prefix);
  // The next hop of exactly this prefix; no_route when it is not in the table.
  NextHopId find(const packet::IpPrefix& prefix) const;

  // Keeps a GPU's table equal to this one from now on, beginning with the routes that are here. The trie must outlive
  // the Fib or be detached.
  Expected<void> attach(Trie& trie);
  void detach(Trie& trie);

  // out[i] = next hop of destination[i], which is in host byte order. Any n.
  void lookup4(const std::uint32_t* destination_host_order, NextHopId* out, unsigned n) const;
  // destination[i]: 16 bytes in network order.
  void lookup6(const std::uint8_t (*destination)[16], NextHopId* out, unsigned n) const;

  std::size_t size4() const { return family4_.routes.load(std::memory_order_relaxed); }
  std::size_t size6() const { return family6_.routes.load(std::memory_order_relaxed); }
  // DPDK heap memory that the tables hold, whatever is in them.
  std::size_t memory_bytes() const { return memory_bytes_; }
  // Groups in use and how many there are.
  std::uint32_t groups_used(int family) const { return family == 4 ? family4_.groups : family6_.groups; }
  std::uint32_t groups_limit(int family) const { return family == 4 ? family4_.max_groups : family6_.max_groups; }

 private:
  // The routes 0/0, 128/1, 192/2, … whose last address is all ones, and 0/1, 128/2, … which lie beside them, as the
  // user gave them, by length; fib.cc says why they are kept apart.
  struct Edge {
    std::array<NextHopId, 129> ones{};
    std::array<NextHopId, 129> beside{};
  };
  struct Family {
    std::atomic<std::uint32_t> routes{0};  // the writer's; others read it
    std::uint32_t max_routes = 0;
    std::uint32_t groups = 0;  // that the prefixes need; rte_fib may use fewer
    std::uint32_t max_groups = 0;
    Edge edge;
    std::vector<Trie*> tries;
  };

  Fib() = default;
  Expected<void> create4(const Options& options);
  Expected<void> create6(const Options& options);
  Family& family(int f) { return f == 4 ? family4_ : family6_; }
  const Family& family(int f) const { return f == 4 ? family4_ : family6_; }
  Rib rib(int f) const;
  NextHopId* edge_route(const packet::IpPrefix& prefix);
  Expected<void> check_capacity(const packet::IpPrefix& prefix, bool is_new) const;
  Expected<void> refresh_edge(int f, unsigned from);
  Expected<void> set(const packet::IpPrefix& prefix, NextHopId next_hop);
  int install(const packet::IpPrefix& prefix, NextHopId next_hop, bool is_new);
  int withdraw(const packet::IpPrefix& prefix);

  rte_fib* fib4_ = nullptr;
  rte_fib6* fib6_ = nullptr;
  Family family4_;
  Family family6_;
  std::size_t memory_bytes_ = 0;
};

}  // namespace sluice::lookup
