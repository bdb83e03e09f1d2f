#include "ipsec/policy_check.h"

#include <algorithm>

#include "packet/headers.h"

namespace sluice::ipsec {
namespace {

bool fits(const EntryTemplate& wanted, const Sa& sa) {
  if (sa.protocol != wanted.protocol || sa.mode != wanted.mode) return false;
  if (wanted.reqid != 0 && sa.reqid != wanted.reqid) return false;
  if (wanted.spi != 0 && packet::be32(sa.spi) != wanted.spi) return false;
  if (wanted.family == 0) return true;
  const Outer& outer = *sa.outer.load(std::memory_order_acquire);
  return outer.family == wanted.family && outer.source == wanted.source && outer.destination == wanted.destination;
}

bool is_tunnel(const Sa* sa) {
  return sa->mode == Mode::tunnel;
}

}  // namespace

bool satisfies(const PolicyEntry& policy, std::span<const Sa* const> opened) {
  if (policy.action == Action::discard) return false;
  std::size_t next = 0;
  for (unsigned i = policy.templates; i-- > 0;) {
    const EntryTemplate& wanted = policy.with[i];
    // Transport mode in between may be more than was asked for; a tunnel may not be passed over.
    std::size_t at = next;
    while (at < opened.size() && !fits(wanted, *opened[at]) && !is_tunnel(opened[at])) ++at;
    if (at < opened.size() && fits(wanted, *opened[at])) {
      next = at + 1;
    } else if (!wanted.optional) {
      return false;
    }
  }
  return std::none_of(opened.begin() + static_cast<std::ptrdiff_t>(next), opened.end(), is_tunnel);
}

}  // namespace sluice::ipsec
