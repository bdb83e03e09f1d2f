#include "lookup/rib.h"

#include <rte_rib.h>
#include <rte_rib6.h>

#include "lookup/dpdk_ipv6.h"

namespace sluice::lookup {

namespace {

// The two families differ only in names and in how an address is passed.
struct Tree4 {
  using Node = rte_rib_node;
  rte_rib* rib;
  Node* exact(const packet::IpPrefix& p) const {
    return rte_rib_lookup_exact(rib, p.address.v4_host_order(), p.length);
  }
  Node* match(const packet::IpAddress& a) const { return rte_rib_lookup(rib, a.v4_host_order()); }
  Node* next(const packet::IpAddress& a, unsigned length, Node* last, int flag) const {
    return rte_rib_get_nxt(rib, a.v4_host_order(), static_cast<std::uint8_t>(length), last, flag);
  }
  static Node* parent(Node* node) { return rte_rib_lookup_parent(node); }
  static std::uint64_t value(const Node* node) {
    std::uint64_t v = 0;
    rte_rib_get_nh(node, &v);
    return v;
  }
  static packet::IpPrefix prefix(const Node* node) {
    std::uint32_t ip = 0;
    packet::IpPrefix p;
    rte_rib_get_ip(node, &ip);
    rte_rib_get_depth(node, &p.length);
    p.address = packet::IpAddress::v4(ip);
    return p;
  }
};

struct Tree6 {
  using Node = rte_rib6_node;
  rte_rib6* rib;
  Node* exact(const packet::IpPrefix& p) const {
    return rte_rib6_lookup_exact(rib, dpdk_ipv6(p.address.bytes.data()), p.length);
  }
  Node* match(const packet::IpAddress& a) const { return rte_rib6_lookup(rib, dpdk_ipv6(a.bytes.data())); }
  Node* next(const packet::IpAddress& a, unsigned length, Node* last, int flag) const {
    return rte_rib6_get_nxt(rib, dpdk_ipv6(a.bytes.data()), static_cast<std::uint8_t>(length), last, flag);
  }
  static Node* parent(Node* node) { return rte_rib6_lookup_parent(node); }
  static std::uint64_t value(const Node* node) {
    std::uint64_t v = 0;
    rte_rib6_get_nh(node, &v);
    return v;
  }
  static packet::IpPrefix prefix(const Node* node) {
    packet::IpPrefix p;
    p.address.family = 6;
    rte_rib6_get_ip(node, dpdk_ipv6(p.address.bytes.data()));
    rte_rib6_get_depth(node, &p.length);
    return p;
  }
};

static_assert(static_cast<int>(RTE_RIB_GET_NXT_ALL) == static_cast<int>(RTE_RIB6_GET_NXT_ALL));
static_assert(static_cast<int>(RTE_RIB_GET_NXT_COVER) == static_cast<int>(RTE_RIB6_GET_NXT_COVER));

template <typename Tree>
std::optional<std::uint64_t> find_in(const Tree& tree, const packet::IpPrefix& prefix) {
  const auto* node = tree.exact(prefix);
  return node != nullptr ? std::optional(tree.value(node)) : std::nullopt;
}

template <typename Tree>
std::optional<std::uint64_t> cover_in(const Tree& tree, const packet::IpPrefix& prefix) {
  auto* node = tree.match(prefix.address);
  while (node != nullptr && tree.prefix(node).length >= prefix.length) {
    node = tree.parent(node);
  }
  return node != nullptr ? std::optional(tree.value(node)) : std::nullopt;
}

template <typename Tree, typename Visit>
void walk(const Tree& tree, const packet::IpPrefix& prefix, int flag, const Visit& visit) {
  typename Tree::Node* node = nullptr;
  while ((node = tree.next(prefix.address, prefix.length, node, flag)) != nullptr) {
    visit(tree.prefix(node), tree.value(node));
  }
}

template <typename Tree, typename Visit>
void walk_all(const Tree& tree, const packet::IpPrefix& everything, const Visit& visit) {
  if (const auto value = find_in(tree, everything)) {
    visit(everything, *value);
  }
  walk(tree, everything, RTE_RIB_GET_NXT_ALL, visit);
}

packet::IpPrefix everything(int family) {
  packet::IpPrefix p;
  p.address.family = static_cast<std::uint8_t>(family);
  return p;
}

}  // namespace

std::optional<std::uint64_t> Rib::find(const packet::IpPrefix& prefix) const {
  return rib4_ != nullptr ? find_in(Tree4{rib4_}, prefix) : find_in(Tree6{rib6_}, prefix);
}

std::optional<std::uint64_t> Rib::cover(const packet::IpPrefix& prefix) const {
  return rib4_ != nullptr ? cover_in(Tree4{rib4_}, prefix) : cover_in(Tree6{rib6_}, prefix);
}

bool Rib::has_longer(const packet::IpAddress& address, unsigned length) const {
  return rib4_ != nullptr ? Tree4{rib4_}.next(address, length, nullptr, RTE_RIB_GET_NXT_COVER) != nullptr
                          : Tree6{rib6_}.next(address, length, nullptr, RTE_RIB6_GET_NXT_COVER) != nullptr;
}

void Rib::for_each_below(const packet::IpPrefix& prefix,
                         const std::function<void(const packet::IpPrefix&)>& visit) const {
  const auto forward = [&](const packet::IpPrefix& below, std::uint64_t) { visit(below); };
  if (rib4_ != nullptr) {
    walk(Tree4{rib4_}, prefix, RTE_RIB_GET_NXT_COVER, forward);
  } else {
    walk(Tree6{rib6_}, prefix, RTE_RIB6_GET_NXT_COVER, forward);
  }
}

void Rib::for_each(const std::function<void(const packet::IpPrefix&, std::uint64_t)>& visit) const {
  if (rib4_ != nullptr) {
    walk_all(Tree4{rib4_}, everything(4), visit);
  } else {
    walk_all(Tree6{rib6_}, everything(6), visit);
  }
}

}  // namespace sluice::lookup
