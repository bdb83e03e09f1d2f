// Three properties of DPDK 22.11's fib decide the shape of this file:
//
// 1. It counts the groups (tbl8) that prefixes longer than /24 need, and the count goes wrong: IPv4 forgets to count up
//    for a prefix whose next hop equals its parent's but counts down when it leaves; IPv6 never counts down. After
//    enough changes every add fails. So the count is kept here, exactly, from the RIB, and DPDK's is kept out of
//    the way:
//    - IPv4: a stored value always differs from its parent's, by the bit `alias` beside the id if need be, which
//      lookups mask off. Then DPDK counts up and down in step.
//    - IPv6: ::/0 is always in the RIB (with no_route until the user sets it), so every prefix has a parent; a new
//      prefix is added with its parent's next hop, which changes no table and counts nothing, then given its own.
// 2. An update of a prefix that ends at the last address (0/0, 128/1, 224/3, …) overwrites the whole table when the
//    prefixes inside it lie side by side up to that address (the loop over gaps wraps to zero). So such prefixes are
//    never handed over: 1…1/k is the disjoint prefixes 1…10/k+1, 1…110/k+2, … and the last address itself.
//    refresh_edge() keeps each of these at what the user's routes make of it.
// 3. A change that runs out of groups half way leaves half a change. It cannot: capacity is checked before, and
//    the tables get `slack` groups more than the limit for what an update needs in passing.
#include "lookup/fib.h"

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include <algorithm>
#include <bit>

#include "lookup/dpdk_ipv6.h"
#include "lookup/fib_limits.h"
#include "lookup/trie.h"

// rte_vect.h declares these without C linkage.
extern "C" {
std::uint16_t rte_vect_get_max_simd_bitwidth();
int rte_vect_set_max_simd_bitwidth(std::uint16_t bits);
}

namespace sluice::lookup {

namespace {

constexpr std::uint64_t alias = max_next_hop_id + 1;
constexpr std::size_t longest_name = 16;
constexpr std::uint32_t least_groups4 = 1024;
constexpr std::uint32_t least_groups6 = 4096;
// In the Internet's IPv4 tables one prefix in 140 is longer than /24.
constexpr std::uint32_t routes_of_group4 = 16;
// An IPv6 prefix of up to /32 needs one group, of up to /40 two, of up to /48 three, unless it lies beside another. The
// Internet's need 0.45 for each; those that scripts/make-data scatters over the whole address space 2.3.
constexpr std::uint32_t groups_of_two_routes6 = 5;
constexpr unsigned chunk = 64;  // lookups at a time: DPDK answers in 8 bytes each, which are narrowed

struct Heap {
  std::size_t used = 0;
  std::size_t free = 0;
};

Heap heap() {
  Heap sum;
  for (unsigned i = 0; i < rte_socket_count(); ++i) {
    rte_malloc_socket_stats stats;
    if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0) {
      sum.used += stats.heap_allocsz_bytes;
      sum.free += stats.heap_freesz_bytes;
    }
  }
  return sum;
}

// DPDK has an AVX-512 lookup for each family, but takes it only when the process-wide limit of vector width allows,
// which it does not by default. Measured at 600 K and 200 K routes (docs/lookup.md): IPv6 is twice as fast by it,
// IPv4 no faster than by the scalar lookup, which prefetches.
void select_vector(rte_fib6* fib) {
  const std::uint16_t before = rte_vect_get_max_simd_bitwidth();
  rte_vect_set_max_simd_bitwidth(512);
  rte_fib6_select_lookup(fib, RTE_FIB6_LOOKUP_DEFAULT);
  rte_vect_set_max_simd_bitwidth(before);
}

std::string key_of(int family) {
  return family == 4 ? "max_ipv4" : "max_ipv6";
}

tl::unexpected<Error> no_memory(int family, std::uint32_t routes, std::size_t free) {
  const std::uint64_t needed = Fib::memory_needed(family, routes);
  return make_error("the IPv" + std::to_string(family) + " route table for " + std::to_string(routes) +
                    " routes does not fit: it needs " + std::to_string(needed >> 20) + " MB and " +
                    std::to_string(free >> 20) + " MB of DPDK's memory are free; lower [route] " + key_of(family) +
                    " or raise [memory] size");
}

unsigned leading_ones(const packet::IpAddress& address) {
  unsigned count = 0;
  for (unsigned byte = 0; byte < address.bits() / 8; ++byte) {
    const unsigned here = static_cast<unsigned>(std::countl_one(address.bytes[byte]));
    count += here;
    if (here < 8) {
      break;
    }
  }
  return count;
}

packet::IpAddress all_ones(int family) {
  packet::IpAddress address;
  address.family = static_cast<std::uint8_t>(family);
  std::fill_n(address.bytes.begin(), address.bits() / 8, std::uint8_t{0xff});
  return address;
}

// 1…10 with j ones.
packet::IpPrefix beside(int family, unsigned j) {
  packet::IpPrefix prefix = packet::IpPrefix::of(all_ones(family), j);
  prefix.length = static_cast<std::uint8_t>(j + 1);
  return prefix;
}

bool is_all_ones(const packet::IpPrefix& prefix) {
  return leading_ones(prefix.address) >= prefix.length;
}

// How many groups exist for `prefix` alone: those below its other neighbours stay.
std::uint32_t own_groups(const Rib& rib, const packet::IpPrefix& prefix) {
  std::uint32_t count = 0;
  for (int depth = (prefix.length - 1) / 8 * 8; depth >= 24; depth -= 8) {
    if (rib.has_longer(prefix.address, static_cast<unsigned>(depth))) {
      break;
    }
    ++count;
  }
  return count;
}

}  // namespace

std::uint32_t Fib::default_groups(int family, std::uint32_t max_routes) {
  return family == 4 ? std::max(least_groups4, max_routes / routes_of_group4)
                     : std::max(least_groups6, max_routes / 2 * groups_of_two_routes6);
}

std::uint32_t Fib::routes_for(int family, std::uint32_t groups) {
  if (groups <= (family == 4 ? least_groups4 : least_groups6)) {
    return 0;
  }
  return family == 4 ? groups * routes_of_group4 : (groups + groups_of_two_routes6 - 1) / groups_of_two_routes6 * 2;
}

packet::IpPrefix Fib::deepest(const packet::IpPrefix& prefix) {
  return is_all_ones(prefix) ? packet::IpPrefix::host(all_ones(prefix.address.family)) : prefix;
}

Expected<std::unique_ptr<Fib>> Fib::create(const Options& options) {
  if (options.name.empty() || options.name.size() > longest_name) {
    return make_error("a route table's name has 1 to 16 characters, not '" + options.name + "'");
  }
  std::unique_ptr<Fib> fib(new Fib);
  const std::size_t before = heap().used;
  if (auto ok = fib->create4(options); !ok) {
    return tl::unexpected(ok.error());
  }
  if (auto ok = fib->create6(options); !ok) {
    return tl::unexpected(ok.error());
  }
  fib->memory_bytes_ = heap().used - before;
  return fib;
}

Expected<void> Fib::create4(const Options& options) {
  const std::size_t free = heap().free;
  family4_.max_routes = options.max_routes4;
  family4_.max_groups = options.groups4 != 0 ? options.groups4 : default_groups(4, options.max_routes4);
  rte_fib_conf conf{};
  conf.type = RTE_FIB_DIR24_8;
  conf.max_routes = static_cast<int>(options.max_routes4 + extra_routes4);
  conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_4B;
  conf.dir24_8.num_tbl8 = family4_.max_groups + slack;
  fib4_ = rte_fib_create((options.name + "4").c_str(), options.numa_node, &conf);
  if (fib4_ == nullptr) {
    return no_memory(4, options.max_routes4, free);
  }
  rte_fib_select_lookup(fib4_, RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
  return {};
}

Expected<void> Fib::create6(const Options& options) {
  const std::size_t free = heap().free;
  family6_.max_routes = options.max_routes6;
  family6_.max_groups = options.groups6 != 0 ? options.groups6 : default_groups(6, options.max_routes6);
  rte_fib6_conf conf{};
  conf.type = RTE_FIB6_TRIE;
  conf.max_routes = static_cast<int>(options.max_routes6 + extra_routes6);
  conf.trie.nh_sz = RTE_FIB6_TRIE_4B;
  conf.trie.num_tbl8 = family6_.max_groups + slack;
  fib6_ = rte_fib6_create((options.name + "6").c_str(), options.numa_node, &conf);
  const std::uint8_t unspecified[16] = {};
  if (fib6_ == nullptr || rte_fib6_add(fib6_, dpdk_ipv6(unspecified), 0, no_route) != 0) {
    return no_memory(6, options.max_routes6, free);
  }
  select_vector(fib6_);
  return {};
}

Fib::~Fib() {
  rte_fib_free(fib4_);
  rte_fib6_free(fib6_);
}

Rib Fib::rib(int f) const {
  return f == 4 ? Rib(rte_fib_get_rib(fib4_)) : Rib(rte_fib6_get_rib(fib6_));
}

// Where a prefix of the edge is kept; null for all others.
NextHopId* Fib::edge_route(const packet::IpPrefix& prefix) {
  Edge& edge = family(prefix.address.family).edge;
  const unsigned ones = leading_ones(prefix.address);
  if (ones >= prefix.length) {
    return &edge.ones[prefix.length];
  }
  return ones + 1U == prefix.length ? &edge.beside[ones] : nullptr;
}

NextHopId Fib::find(const packet::IpPrefix& prefix) const {
  if (const NextHopId* at = const_cast<Fib*>(this)->edge_route(prefix)) {
    return *at;
  }
  return static_cast<NextHopId>(rib(prefix.address.family).find(prefix).value_or(no_route)) & max_next_hop_id;
}

Expected<void> Fib::check_capacity(const packet::IpPrefix& prefix, bool is_new) const {
  const int f = prefix.address.family;
  const Family& table = family(f);
  const std::string version = "IPv" + std::to_string(f);
  const std::uint32_t routes = table.routes.load(std::memory_order_relaxed);
  if (is_new && routes >= table.max_routes) {
    return make_error("the " + version + " route table is full: " + prefix.str() + " does not fit beside " +
                      std::to_string(routes) + " routes; raise [route] " + key_of(f));
  }
  const packet::IpPrefix deepest = Fib::deepest(prefix);
  if (is_new && table.groups + own_groups(rib(f), deepest) > table.max_groups) {
    return make_error("the " + version +
                      " route table has no capacity for another prefix longer than /24: " + prefix.str() +
                      " does not fit beside " + std::to_string(table.groups) + " groups; raise [route] " + key_of(f));
  }
  for (Trie* trie : table.tries) {
    if (auto ok = trie->reserve(deepest); !ok) {
      return ok;
    }
  }
  return {};
}

Expected<void> Fib::add(const packet::IpPrefix& prefix, NextHopId next_hop) {
  if (next_hop == no_route || next_hop > max_next_hop_id) {
    return make_error("next hop id " + std::to_string(next_hop) + " of " + prefix.str() + " is not between 1 and " +
                      std::to_string(max_next_hop_id));
  }
  const NextHopId present = find(prefix);
  if (present == next_hop) {
    return {};
  }
  if (auto ok = check_capacity(prefix, present == no_route); !ok) {
    return ok;
  }
  family(prefix.address.family).routes.fetch_add(present == no_route ? 1 : 0, std::memory_order_relaxed);
  if (NextHopId* at = edge_route(prefix)) {
    *at = next_hop;
    return refresh_edge(prefix.address.family, leading_ones(prefix.address));
  }
  return set(prefix, next_hop);
}

Expected<void> Fib::remove(const packet::IpPrefix& prefix) {
  if (find(prefix) == no_route) {
    return make_error("there is no route " + prefix.str() + " to remove");
  }
  family(prefix.address.family).routes.fetch_sub(1, std::memory_order_relaxed);
  if (NextHopId* at = edge_route(prefix)) {
    *at = no_route;
    return refresh_edge(prefix.address.family, std::min<unsigned>(prefix.length, leading_ones(prefix.address)));
  }
  return set(prefix, no_route);
}

Expected<void> Fib::refresh_edge(int f, unsigned from) {
  const Edge& edge = family(f).edge;
  const unsigned bits = f == 4 ? 32 : 128;
  NextHopId covering = no_route;
  for (unsigned j = 0; j < bits; ++j) {
    covering = edge.ones[j] != no_route ? edge.ones[j] : covering;
    if (j < from) {
      continue;
    }
    if (auto ok = set(beside(f, j), edge.beside[j] != no_route ? edge.beside[j] : covering); !ok) {
      return ok;
    }
  }
  return set(packet::IpPrefix::host(all_ones(f)), edge.ones[bits] != no_route ? edge.ones[bits] : covering);
}

// Makes the RIB, the tables and the tries hold `next_hop` for the prefix; no_route takes the prefix out.
Expected<void> Fib::set(const packet::IpPrefix& prefix, NextHopId next_hop) {
  Family& table = family(prefix.address.family);
  const Rib store = rib(prefix.address.family);
  const auto present = store.find(prefix);
  if (!present && next_hop == no_route) {
    return {};
  }
  if (present && (*present & max_next_hop_id) == next_hop) {
    return {};
  }
  if (!present) {
    table.groups += own_groups(store, prefix);
  }
  const int status = next_hop == no_route ? withdraw(prefix) : install(prefix, next_hop, !present);
  if (next_hop == no_route) {
    table.groups -= own_groups(store, prefix);
  }
  for (Trie* trie : table.tries) {
    trie->update(store, prefix);
  }
  if (status != 0) {
    return make_error("DPDK's fib refused " + prefix.str() + ": " + rte_strerror(-status));
  }
  return {};
}

int Fib::install(const packet::IpPrefix& prefix, NextHopId next_hop, bool is_new) {
  if (prefix.address.family == 4) {
    const auto parent = is_new ? rib(4).cover(prefix) : std::nullopt;
    const std::uint64_t value = parent == next_hop ? next_hop | alias : next_hop;
    return rte_fib_add(fib4_, prefix.address.v4_host_order(), prefix.length, value);
  }
  const auto* address = dpdk_ipv6(prefix.address.bytes.data());
  if (is_new) {
    const std::uint64_t parent = rib(6).cover(prefix).value_or(no_route);
    if (const int status = rte_fib6_add(fib6_, address, prefix.length, parent); status != 0) {
      return status;
    }
  }
  return rte_fib6_add(fib6_, address, prefix.length, next_hop);
}

int Fib::withdraw(const packet::IpPrefix& prefix) {
  return prefix.address.family == 4 ? rte_fib_delete(fib4_, prefix.address.v4_host_order(), prefix.length)
                                    : rte_fib6_delete(fib6_, dpdk_ipv6(prefix.address.bytes.data()), prefix.length);
}

Expected<void> Fib::attach(Trie& trie) {
  const Rib store = rib(trie.family());
  Expected<void> result;
  store.for_each([&](const packet::IpPrefix& prefix, std::uint64_t) {
    if (result) {
      result = trie.reserve(prefix);
    }
    if (result) {
      trie.update(store, prefix);
    }
  });
  if (result) {
    family(trie.family()).tries.push_back(&trie);
  }
  return result;
}

void Fib::detach(Trie& trie) {
  std::erase(family(trie.family()).tries, &trie);
}

void Fib::lookup4(const std::uint32_t* destination_host_order, NextHopId* out, unsigned n) const {
  std::uint64_t wide[chunk];
  for (unsigned done = 0; done < n; done += chunk) {
    const unsigned now = std::min(chunk, n - done);
    rte_fib_lookup_bulk(fib4_, const_cast<std::uint32_t*>(destination_host_order) + done, wide, static_cast<int>(now));
    for (unsigned i = 0; i < now; ++i) {
      out[done + i] = static_cast<NextHopId>(wide[i]) & max_next_hop_id;
    }
  }
}

void Fib::lookup6(const std::uint8_t (*destination)[16], NextHopId* out, unsigned n) const {
  std::uint64_t wide[chunk];
  for (unsigned done = 0; done < n; done += chunk) {
    const unsigned now = std::min(chunk, n - done);
    rte_fib6_lookup_bulk(fib6_, dpdk_ipv6(const_cast<std::uint8_t(*)[16]>(destination) + done), wide,
                         static_cast<int>(now));
    for (unsigned i = 0; i < now; ++i) {
      out[done + i] = static_cast<NextHopId>(wide[i]);
    }
  }
}

}  // namespace sluice::lookup
