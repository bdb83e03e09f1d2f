// For tests: rules that overlap a lot, and keys at and around every edge of them.
#pragma once

#include <array>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "lookup/acl/acl_reference_test.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/reference_test.h"

namespace sluice::lookup::acl {

struct RandomRules {
  std::size_t count = 100;
  int family = 4;
  unsigned any_address = 4;  // one prefix in so many is of no family, or of length 0
  bool has_default = false;
  unsigned port_values = 5;  // edges of ranges are among so many
  unsigned tags = 0;         // one rule in so many asks for tags; 0: none
};

inline PortRange random_ports(const RandomRules& wanted, std::mt19937_64& random) {
  constexpr std::array<std::uint16_t, 8> edges = {0, 65535, 80, 1024, 1023, 443, 8080, 32768};
  const auto draw = [&] {
    return wanted.port_values <= edges.size() ? edges[random() % wanted.port_values]
                                              : static_cast<std::uint16_t>(random() % wanted.port_values);
  };
  if (random() % 3 == 0) {
    return {};
  }
  const std::uint16_t a = draw();
  const std::uint16_t b = draw();
  return {std::min(a, b), std::max(a, b)};
}

inline packet::IpPrefix random_rule_prefix(const RandomRules& wanted, std::mt19937_64& random) {
  if (random() % wanted.any_address == 0) {
    return random() % 2 == 0 ? packet::IpPrefix()
                             : packet::IpPrefix::of(
                                   packet::IpAddress::from_bytes(wanted.family, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 0);
  }
  return random_overlapping_prefix(wanted.family, random);
}

inline std::vector<AclRule> random_rules(const RandomRules& wanted, std::mt19937_64& random) {
  constexpr std::array<std::uint8_t, 4> protocols = {6, 17, 1, 0};
  std::vector<AclRule> rules;
  while (rules.size() < wanted.count) {
    AclRule rule;
    rule.source = random_rule_prefix(wanted, random);
    rule.destination = random_rule_prefix(wanted, random);
    rule.source_port = random_ports(wanted, random);
    rule.destination_port = random_ports(wanted, random);
    if (random() % 2 == 0) {
      const auto mask = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : 0xff);
      rule.protocol = {static_cast<std::uint8_t>(protocols[random() % protocols.size()] & mask), mask};
    }
    if (random() % 3 == 0) {
      const auto mask = static_cast<std::uint8_t>(random() & random());
      rule.flags = {static_cast<std::uint8_t>(random() & mask), mask};
    }
    if (wanted.tags != 0 && random() % wanted.tags == 0) {
      const auto mask = static_cast<std::uint16_t>(1U << random() % 4 | 1U << (8 + random() % 4));
      rule.tags = {static_cast<std::uint16_t>(random() & mask), mask};
    }
    rules.push_back(rule);
    if (random() % 16 == 0) {
      rules.push_back(rules[random() % rules.size()]);  // a duplicate, which nothing reaches
    }
  }
  if (wanted.has_default) {
    rules.emplace_back();
  }
  return rules;
}

template <typename Key>
void set_key_address(std::uint8_t (&to)[sizeof(Key::source)], const packet::IpAddress& from) {
  std::memcpy(to, from.bytes.data(), sizeof to);
}

inline void set_key_port(std::uint8_t (&to)[2], unsigned port) {
  to[0] = static_cast<std::uint8_t>(port >> 8);
  to[1] = static_cast<std::uint8_t>(port);
}

// Inside the rule; addresses and ports at one end of their ranges, protocol and flags with random bits where any may
// be. What tags hold that the rule does not ask for must not matter.
template <typename Key>
Key key_in(const AclRule& rule, bool at_last, std::mt19937_64& random) {
  Key key;
  std::memset(&key, static_cast<int>(random()), sizeof key);
  const auto address = [&](std::uint8_t(&to)[sizeof(Key::source)], packet::IpPrefix prefix) {
    if (prefix.address.empty()) {
      prefix = packet::IpPrefix::of(random_address(family_of<Key>(), random), 0);
    }
    set_key_address<Key>(to, at_last ? last_address(prefix) : prefix.address);
  };
  address(key.source, rule.source);
  address(key.destination, rule.destination);
  set_key_port(key.source_port, at_last ? rule.source_port.last : rule.source_port.first);
  set_key_port(key.destination_port, at_last ? rule.destination_port.last : rule.destination_port.first);
  key.protocol = static_cast<std::uint8_t>(rule.protocol.value | (random() & ~rule.protocol.mask));
  key.flags = static_cast<std::uint8_t>(rule.flags.value | (random() & ~rule.flags.mask));
  std::uint16_t tags;
  std::memcpy(&tags, key.tags, sizeof tags);
  tags = static_cast<std::uint16_t>(rule.tags.value | (static_cast<std::uint16_t>(random()) & ~rule.tags.mask));
  std::memcpy(key.tags, &tags, sizeof tags);
  return key;
}

// Both ends of a rule, and one step beyond each of its edges, a field at a time.
template <typename Key>
void append_edges(const AclRule& rule, std::mt19937_64& random, std::vector<Key>& out) {
  for (const bool at_last : {false, true}) {
    const Key base = key_in<Key>(rule, at_last, random);
    out.insert(out.end(), 8, base);
    Key* const key = out.data() + out.size() - 7;
    const auto beyond = [&](const std::uint8_t* bytes) {
      return neighbour(packet::IpAddress::from_bytes(family_of<Key>(), bytes), at_last);
    };
    set_key_address<Key>(key[0].source, beyond(base.source));
    set_key_address<Key>(key[1].destination, beyond(base.destination));
    const unsigned step = at_last ? 1U : 0xffffU;
    set_key_port(key[2].source_port, (at_last ? rule.source_port.last : rule.source_port.first) + step);
    set_key_port(key[3].destination_port, (at_last ? rule.destination_port.last : rule.destination_port.first) + step);
    key[4].protocol = static_cast<std::uint8_t>(key[4].protocol ^ 1U << random() % 8);
    key[5].flags = static_cast<std::uint8_t>(key[5].flags ^ 1U << random() % 8);
    const unsigned tag = static_cast<unsigned>(random() % 16);
    key[6].tags[tag / 8] = static_cast<std::uint8_t>(key[6].tags[tag / 8] ^ 1U << tag % 8);
  }
}

template <typename Key>
std::vector<Key> edge_keys(std::span<const AclRule> rules, std::mt19937_64& random) {
  std::vector<Key> keys;
  for (const AclRule& rule : rules) {
    if (rule.is_of(family_of<Key>())) {
      append_edges(rule, random, keys);
    }
  }
  return keys;
}

}  // namespace sluice::lookup::acl
