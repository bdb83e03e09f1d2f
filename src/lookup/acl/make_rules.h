// Made-up rule sets with the mixes of ClassBench's three kinds, and headers for them, for tests and benches that have
// no files. The same arguments give the same set.
//
//   acl   an access list: prefixes mostly of /22 and longer on both sides, any source port, TCP
//   fw    a firewall: half of the rules have any source or any destination, ranges of ports on both sides, SYN rules
//   ipc   a chain of packet filters: between the two, with many different pairs of ports
//
// The shares of lengths, ranges, protocols and flags are those of sets of 10,000 filters; addresses lie in a few
// hundred networks, so that prefixes nest and meet. Duplicates are left out. The last rule matches everything in acl
// and fw; ipc has no such rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lookup/acl/acl_rule.h"

namespace sluice::lookup::acl {

enum class RuleMix { acl, fw, ipc };
inline constexpr RuleMix all_mixes[] = {RuleMix::acl, RuleMix::fw, RuleMix::ipc};
std::string_view name_of(RuleMix mix);

// family 6: the same set with each IPv4 prefix below 2001:db8::/32.
std::vector<AclRule> make_rules(RuleMix mix, std::size_t count, std::uint64_t seed, int family = 4);

// Headers drawn from the rules, as ClassBench draws them: each lies at a corner or inside of a rule, rules near the
// beginning and near the end alike. One in sixteen is of any address. `rules` must not be empty.
std::vector<Key4> make_headers4(std::span<const AclRule> rules, std::size_t count, std::uint64_t seed);
std::vector<Key6> make_headers6(std::span<const AclRule> rules, std::size_t count, std::uint64_t seed);

}  // namespace sluice::lookup::acl
