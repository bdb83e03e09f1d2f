#include "lookup/table_need.h"

#include <algorithm>

#include "lookup/fib.h"

namespace sluice::lookup {

void TableNeed::add(const packet::IpPrefix& prefix) {
  const int family = prefix.address.family;
  ++routes_[family == 6];
  const packet::IpPrefix deepest = Fib::deepest(prefix);
  for (int depth = (deepest.length - 1) / 8 * 8; depth >= 24; depth -= 8) {
    if (!inner_.insert(packet::IpPrefix::of(deepest.address, static_cast<unsigned>(depth))).second) {
      break;
    }
    ++groups_[family == 6];
  }
}

std::uint32_t TableNeed::max_routes(int family) const {
  return std::max(routes(family), Fib::routes_for(family, groups(family)));
}

}  // namespace sluice::lookup
