// For tests: first match by its definition, rule after rule, field after field.
#pragma once

#include <span>
#include <vector>

#include "lookup/acl/acl_rule.h"

namespace sluice::lookup::acl {

template <typename Key>
constexpr int family_of() {
  return sizeof(Key::source) == 4 ? 4 : 6;
}

template <typename Key>
bool matches_by_definition(const AclRule& rule, const Key& key) {
  const unsigned source_port = key.source_port[0] * 256U + key.source_port[1];
  const unsigned destination_port = key.destination_port[0] * 256U + key.destination_port[1];
  if (source_port < rule.source_port.first || source_port > rule.source_port.last) {
    return false;
  }
  if (destination_port < rule.destination_port.first || destination_port > rule.destination_port.last) {
    return false;
  }
  if ((key.protocol & rule.protocol.mask) != rule.protocol.value || (key.flags & rule.flags.mask) != rule.flags.value) {
    return false;
  }
  if (!rule.tags.contains(static_cast<std::uint16_t>(key.tags[0] | key.tags[1] << 8))) {
    return false;
  }
  constexpr int family = family_of<Key>();
  if (!rule.source.address.empty() && !rule.source.contains(packet::IpAddress::from_bytes(family, key.source))) {
    return false;
  }
  return rule.destination.address.empty() ||
         rule.destination.contains(packet::IpAddress::from_bytes(family, key.destination));
}

template <typename Key>
RuleIndex first_match(std::span<const AclRule> rules, const Key& key) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].is_of(family_of<Key>()) && matches_by_definition(rules[i], key)) {
      return static_cast<RuleIndex>(i);
    }
  }
  return no_match;
}

}  // namespace sluice::lookup::acl
