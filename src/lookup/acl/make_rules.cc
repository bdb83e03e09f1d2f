#include "lookup/acl/make_rules.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>
#include <tuple>

namespace sluice::lookup::acl {

namespace {

using Random = std::mt19937_64;

// A share of 1,000 for each of the values.
template <typename Value>
struct Share {
  unsigned share;
  Value value;
};

template <typename Value, std::size_t N>
const Value& draw(const std::array<Share<Value>, N>& shares, Random& random) {
  auto at = static_cast<unsigned>(random() % 1000);
  for (const Share<Value>& one : shares) {
    if (at < one.share) {
      return one.value;
    }
    at -= one.share;
  }
  return shares.back().value;
}

using Lengths = std::array<Share<unsigned>, 8>;
struct Kind {
  Lengths source, destination;
  std::array<Share<std::uint8_t>, 4> protocol;  // 0: any
  std::array<Share<MaskedByte>, 4> tcp_flags;
  std::array<Share<unsigned>, 4> source_port, destination_port;  // any, one, of 1024 on, a range
  std::size_t networks, ports;
  double sources, destinations;  // different prefixes for each rule
};

enum PortKind : unsigned { any_port, one_port, high_ports, some_ports };
constexpr MaskedByte syn_only{0x02, 0x12};
constexpr MaskedByte no_syn{0x00, 0x02};
constexpr MaskedByte with_ack{0x10, 0x10};

constexpr Kind kinds[] = {
    {.source = {{{4, 0}, {10, 16}, {25, 22}, {100, 23}, {61, 24}, {60, 29}, {240, 31}, {500, 32}}},
     .destination = {{{9, 0}, {32, 15}, {20, 20}, {100, 22}, {80, 24}, {60, 30}, {190, 31}, {509, 32}}},
     .protocol = {{{870, 6}, {86, 0}, {35, 1}, {9, 17}}},
     .tcp_flags = {{{830, {}}, {85, no_syn}, {85, with_ack}, {0, {}}}},
     .source_port = {{{1000, any_port}, {0, one_port}, {0, high_ports}, {0, some_ports}}},
     .destination_port = {{{120, any_port}, {800, one_port}, {30, high_ports}, {50, some_ports}}},
     .networks = 200,
     .ports = 100,
     .sources = 0.5,
     .destinations = 0.12},
    {.source = {{{410, 0}, {198, 1}, {30, 2}, {30, 16}, {62, 28}, {50, 30}, {95, 31}, {125, 32}}},
     .destination = {{{186, 0}, {97, 1}, {9, 2}, {20, 21}, {20, 28}, {68, 30}, {282, 31}, {318, 32}}},
     .protocol = {{{577, 6}, {322, 17}, {52, 47}, {49, 1}}},
     .tcp_flags = {{{30, {}}, {955, syn_only}, {10, no_syn}, {5, with_ack}}},
     .source_port = {{{520, any_port}, {250, one_port}, {180, high_ports}, {50, some_ports}}},
     .destination_port = {{{200, any_port}, {600, one_port}, {120, high_ports}, {80, some_ports}}},
     .networks = 700,
     .ports = 30,
     .sources = 0.6,
     .destinations = 1},
    {.source = {{{71, 0}, {49, 1}, {90, 16}, {70, 22}, {280, 24}, {160, 26}, {100, 31}, {180, 32}}},
     .destination = {{{55, 0}, {30, 1}, {95, 16}, {70, 23}, {240, 24}, {130, 26}, {114, 31}, {266, 32}}},
     .protocol = {{{393, 17}, {319, 0}, {277, 6}, {11, 1}}},
     .tcp_flags = {{{600, {}}, {390, no_syn}, {5, syn_only}, {5, with_ack}}},
     .source_port = {{{600, any_port}, {250, one_port}, {100, high_ports}, {50, some_ports}}},
     .destination_port = {{{450, any_port}, {400, one_port}, {100, high_ports}, {50, some_ports}}},
     .networks = 400,
     .ports = 40,
     .sources = 0.25,
     .destinations = 0.4},
};

constexpr std::uint16_t first_high = 1024;

PortRange draw_ports(const std::array<Share<unsigned>, 4>& shares, std::size_t ports, Random& random) {
  // The same few ports, spread by a multiplication over the first 8,192.
  const auto port = [&] { return static_cast<std::uint16_t>(random() % ports * 2654435761U >> 7 & 0x1fff); };
  switch (draw(shares, random)) {
    case one_port: {
      const std::uint16_t one = port();
      return {one, one};
    }
    case high_ports:
      return {first_high, 0xffff};
    case some_ports: {
      const std::uint16_t first = port();
      return {first, static_cast<std::uint16_t>(first + 1 + random() % 4 * 50)};
    }
    default:
      return {};
  }
}

using Prefixes = std::vector<packet::IpPrefix>;

Prefixes draw_prefixes(const Lengths& lengths, const std::vector<std::uint32_t>& networks, double count,
                       Random& random) {
  Prefixes prefixes(1 + static_cast<std::size_t>(count));
  for (packet::IpPrefix& prefix : prefixes) {
    const std::uint32_t network = networks[random() % networks.size()];
    const std::uint32_t address = network | static_cast<std::uint32_t>(random() & 0x3fff);
    prefix = packet::IpPrefix::of(packet::IpAddress::v4(address), draw(lengths, random));
  }
  return prefixes;
}

AclRule draw_rule(const Kind& kind, const Prefixes& sources, const Prefixes& destinations, Random& random) {
  AclRule rule;
  rule.source = sources[random() % sources.size()];
  rule.destination = destinations[random() % destinations.size()];
  const std::uint8_t protocol = draw(kind.protocol, random);
  rule.protocol = {protocol, static_cast<std::uint8_t>(protocol == 0 ? 0 : 0xff)};
  if (protocol == 6) {
    rule.flags = draw(kind.tcp_flags, random);
  }
  if (protocol == 6 || protocol == 17) {
    rule.source_port = draw_ports(kind.source_port, kind.ports, random);
    rule.destination_port = draw_ports(kind.destination_port, kind.ports, random);
  }
  rule.action.kind = random() % 2 == 0 ? ActionKind::permit : ActionKind::deny;
  return rule;
}

packet::IpPrefix below_documentation(const packet::IpPrefix& prefix) {
  constexpr std::array<std::uint8_t, 4> documentation = {0x20, 0x01, 0x0d, 0xb8};
  packet::IpAddress address;
  address.family = 6;
  std::copy(documentation.begin(), documentation.end(), address.bytes.begin());
  std::copy_n(prefix.address.bytes.begin(), 4, address.bytes.begin() + 4);
  return packet::IpPrefix::of(address, prefix.length == 0 ? 0 : 32U + prefix.length);
}

template <typename Pick>
void set_address(std::uint8_t* to, const packet::IpPrefix& prefix, unsigned bytes, const Pick& host_bits) {
  std::copy_n(prefix.address.bytes.begin(), bytes, to);
  for (unsigned bit = prefix.length; bit < bytes * 8; ++bit) {
    if (host_bits()) {
      to[bit / 8] |= static_cast<std::uint8_t>(0x80U >> bit % 8);
    }
  }
}

void set_port(std::uint8_t* to, std::uint32_t port) {
  to[0] = static_cast<std::uint8_t>(port >> 8);
  to[1] = static_cast<std::uint8_t>(port);
}

// A corner of the rule or a place inside.
template <typename Key>
Key header_of(const AclRule& rule, Random& random) {
  Key key{};
  constexpr unsigned bytes = sizeof(key.source);
  const auto address = [&](std::uint8_t* to, const packet::IpPrefix& prefix) {
    const std::uint64_t kind = random() % 3;
    set_address(to, prefix, bytes, [&] { return kind == 2 ? random() % 2 == 0 : kind == 1; });
  };
  const auto port = [&](std::uint8_t* to, PortRange range) {
    const std::uint64_t kind = random() % 3;
    const std::uint32_t inside = range.first + static_cast<std::uint32_t>(random() % (range.last - range.first + 1U));
    set_port(to, kind == 0 ? range.first : kind == 1 ? range.last : inside);
  };
  address(key.source, rule.source);
  address(key.destination, rule.destination);
  port(key.source_port, rule.source_port);
  port(key.destination_port, rule.destination_port);
  const auto byte = [&](MaskedByte wanted) {
    return static_cast<std::uint8_t>(wanted.value | (random() & static_cast<std::uint8_t>(~wanted.mask)));
  };
  key.protocol = byte(rule.protocol);
  key.flags = byte(rule.flags);
  if (random() % 16 == 0) {
    for (std::uint8_t& b : random() % 2 == 0 ? key.source : key.destination) {
      b = static_cast<std::uint8_t>(random());
    }
  }
  return key;
}

template <typename Key>
std::vector<Key> make_headers(std::span<const AclRule> rules, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Key> keys;
  keys.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    keys.push_back(header_of<Key>(rules[random() % rules.size()], random));
  }
  return keys;
}

}  // namespace

std::string_view name_of(RuleMix mix) {
  constexpr std::string_view names[] = {"acl", "fw", "ipc"};
  return names[static_cast<std::size_t>(mix)];
}

std::vector<AclRule> make_rules(RuleMix mix, std::size_t count, std::uint64_t seed, int family) {
  const Kind& kind = kinds[static_cast<std::size_t>(mix)];
  Random random(seed);
  std::vector<std::uint32_t> networks(kind.networks);
  for (std::uint32_t& network : networks) {
    network = static_cast<std::uint32_t>(random()) & 0xffff'c000;
  }
  const auto rules_wanted = static_cast<double>(count);
  const Prefixes sources = draw_prefixes(kind.source, networks, rules_wanted * kind.sources, random);
  const Prefixes destinations = draw_prefixes(kind.destination, networks, rules_wanted * kind.destinations, random);
  const auto key_of = [](const AclRule& r) {
    return std::tuple(r.source, r.destination, r.source_port.first, r.source_port.last, r.destination_port.first,
                      r.destination_port.last, r.protocol.value, r.protocol.mask, r.flags.value, r.flags.mask);
  };
  const bool has_default = mix != RuleMix::ipc;
  std::set<decltype(key_of(AclRule()))> known;
  std::vector<AclRule> rules;
  while (rules.size() + (has_default ? 1 : 0) < count) {
    const AclRule rule = draw_rule(kind, sources, destinations, random);
    if (known.insert(key_of(rule)).second) {
      rules.push_back(rule);
    }
  }
  if (has_default && count > 0) {
    AclRule all;
    all.source = all.destination = packet::IpPrefix::of(packet::IpAddress::v4(0), 0);
    all.action.kind = ActionKind::deny;
    rules.push_back(all);
  }
  for (AclRule& rule : rules) {
    if (family == 6) {
      rule.source = below_documentation(rule.source);
      rule.destination = below_documentation(rule.destination);
    }
  }
  return rules;
}

std::vector<Key4> make_headers4(std::span<const AclRule> rules, std::size_t count, std::uint64_t seed) {
  return make_headers<Key4>(rules, count, seed);
}

std::vector<Key6> make_headers6(std::span<const AclRule> rules, std::size_t count, std::uint64_t seed) {
  return make_headers<Key6>(rules, count, seed);
}

}  // namespace sluice::lookup::acl
