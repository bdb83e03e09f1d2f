#include "lookup/acl/set_tables.h"

namespace sluice::lookup::acl {

template <typename Value>
SetTables::Segments<Value> SetTables::segments(std::span<const NamedSet> sets,
                                               std::span<const std::uint32_t> bits_of_set, int family, Number most) {
  struct Edge {
    Number at;
    std::uint32_t set;
    int step;
  };
  std::vector<Edge> edges;
  for (std::uint32_t s = 0; s < sets.size(); ++s) {
    if (bits_of_set[s] == 0) continue;
    for (const SetEntry& entry : sets[s].entries) {
      if (entry.family != family) continue;
      edges.push_back({entry.first, s, 1});
      if (entry.last != most) edges.push_back({entry.last + 1, s, -1});
    }
  }
  Segments<Value> segments;
  if (edges.empty()) return segments;
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  std::vector<std::int64_t> covers(sets.size());  // by set: its entries that the place lies in
  std::uint32_t bits = 0;
  segments.starts.push_back(0);
  segments.bits.push_back(0);
  for (std::size_t e = 0; e < edges.size();) {
    const Number at = edges[e].at;
    for (; e < edges.size() && edges[e].at == at; ++e) {
      const std::uint32_t set = edges[e].set;
      covers[set] += edges[e].step;
      bits = covers[set] > 0 ? bits | bits_of_set[set] : bits & ~bits_of_set[set];
    }
    if (at == 0) {
      segments.bits.back() = bits;
    } else if (bits != segments.bits.back()) {
      segments.starts.push_back(static_cast<Value>(at));
      segments.bits.push_back(bits);
    }
  }
  return segments;
}

SetTables SetTables::build(std::span<const NamedSet> sets, const TagPlan& plan) {
  std::vector<std::uint32_t> bits_of_set(sets.size());
  for (const TagPlan::Use& use : plan.uses()) {
    bits_of_set[use.set] |= use.side == Side::source ? use.bit : static_cast<std::uint32_t>(use.bit) << 16;
  }
  SetTables tables;
  tables.addresses4_ = segments<std::uint32_t>(sets, bits_of_set, 4, 0xffff'ffff);
  tables.addresses6_ = segments<Number>(sets, bits_of_set, 6, ~Number{0});
  tables.ports_ = segments<std::uint16_t>(sets, bits_of_set, 0, 0xffff);
  return tables;
}

}  // namespace sluice::lookup::acl
