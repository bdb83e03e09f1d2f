#include "lookup/acl/acl_rule.h"

#include <algorithm>

#include "packet/headers.h"

namespace sluice::lookup::acl {

namespace {

std::string wrong_with(const AclRule& rule) {
  const int source = rule.source.address.family;
  const int destination = rule.destination.address.family;
  if (source != 0 && destination != 0 && source != destination) {
    return "its source " + rule.source.str() + " and its destination " + rule.destination.str() +
           " are not of one family; make two rules of it";
  }
  for (const packet::IpPrefix& prefix : {rule.source, rule.destination}) {
    if (!prefix.address.empty() &&
        (prefix.length > prefix.address.bits() || prefix != packet::IpPrefix::of(prefix.address, prefix.length))) {
      return prefix.str() + " is not a prefix with its host bits cleared";
    }
  }
  if (rule.source_port.first > rule.source_port.last || rule.destination_port.first > rule.destination_port.last) {
    return "a port range ends before it begins";
  }
  if ((rule.protocol.value & ~rule.protocol.mask) != 0 || (rule.flags.value & ~rule.flags.mask) != 0 ||
      (rule.tags.value & ~rule.tags.mask) != 0) {
    return "a value has bits outside its mask, which nothing could match";
  }
  return {};
}

}  // namespace

bool has_ports(const MaskedByte& protocol) {
  for (unsigned one = 0; one <= 0xff; ++one) {
    const auto number = static_cast<std::uint8_t>(one);
    if (packet::has_ports(number) && protocol.contains(number)) return true;
  }
  return false;
}

bool names_ports_in_vain(const AclRule& rule) {
  return (rule.source_port != PortRange{} || rule.destination_port != PortRange{}) && !has_ports(rule.protocol);
}

std::vector<AclRule> in_match_order(std::vector<AclRule> rules) {
  std::stable_sort(rules.begin(), rules.end(),
                   [](const AclRule& a, const AclRule& b) { return a.priority > b.priority; });
  return rules;
}

Expected<void> check(std::span<const AclRule> rules) {
  if (rules.size() > max_rules) {
    return make_error(std::to_string(rules.size()) + " ACL rules are more than a classifier has capacity for, " +
                      std::to_string(max_rules));
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (const std::string wrong = wrong_with(rules[i]); !wrong.empty()) {
      return make_error("ACL rule " +
                        (rules[i].line != 0 ? "of line " + std::to_string(rules[i].line) : std::to_string(i)) + ": " +
                        wrong);
    }
  }
  return {};
}

}  // namespace sluice::lookup::acl
