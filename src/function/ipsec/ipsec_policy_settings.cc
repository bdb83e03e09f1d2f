// [[ipsec.policy]]: a policy of the file or of the API.
#include <optional>
#include <utility>

#include "function/ipsec/ipsec_section.h"
#include "function/ipsec/ipsec_settings.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using ipsec::Direction;
using ipsec::Mode;
using ipsec::Protocol;

struct PolicyWords {
  std::string name, source, destination, tunnel_source, tunnel_destination;
  Direction direction = Direction::out;
  ipsec::Action action = ipsec::Action::protect;
  Protocol protocol = Protocol::esp;
  Mode mode = Mode::tunnel;
  std::int64_t priority = 1000, reqid = 0, ah_reqid = 0;
  bool ah_around = false;
  std::int64_t upper = 0, source_port = -1, destination_port = -1;
};

// A port, or -1: any.
Option<PolicyWords> port_option(const char* key, std::int64_t PolicyWords::*member, std::string text) {
  return Option<PolicyWords>{
      key,
      std::move(text),
      [=](Settings& section, PolicyWords& to) {
        const std::int64_t port = section.integer(key, 0, 0, 65535);
        if (section.has(key)) to.*member = port;
      },
      [=](const PolicyWords& of) { return of.*member < 0 ? option::literal("any") : std::to_string(of.*member); },
      false,
      "0 to 65535"}
      .by_default("any");
}

const std::vector<Option<PolicyWords>>& policy_settings() {
  static const std::vector<Option<PolicyWords>> all = option::all_reloadable<PolicyWords>(
      {option::text("name", &PolicyWords::name, "what the policy is called in lists").by_default("what it is for"),
       direction_option<PolicyWords>("`out`: of packets that leave; `in`: of those that came in"),
       needed<PolicyWords>("source", &PolicyWords::source, "IPv4 or IPv6 prefix", "of the packets that it is for"),
       needed<PolicyWords>("destination", &PolicyWords::destination, "IPv4 or IPv6 prefix", "and their destination"),
       option::number("upper_protocol", &PolicyWords::upper, {0, 255},
                      "their protocol, as IANA numbers it: 6 TCP, 17 UDP; 0: any"),
       port_option("source_port", &PolicyWords::source_port, "their source port; of ICMP the type"),
       port_option("destination_port", &PolicyWords::destination_port, "their destination port; of ICMP the code"),
       option::number("priority", &PolicyWords::priority, {0, 0xffffffff},
                      "of several policies that fit, that with the lowest number counts"),
       option::word("action", &PolicyWords::action,
                    {{"protect", ipsec::Action::protect},
                     {"bypass", ipsec::Action::bypass},
                     {"discard", ipsec::Action::discard}},
                    "whether they must be protected, go by in clear, or are dropped"),
       protocol_option<PolicyWords>(), mode_option<PolicyWords>(),
       option::text("tunnel_source", &PolicyWords::tunnel_source, "this end of the tunnel, where packets leave by it")
           .takes("IPv4 or IPv6 address"),
       option::text("tunnel_destination", &PolicyWords::tunnel_destination, "and the other one")
           .takes("IPv4 or IPv6 address"),
       option::number("reqid", &PolicyWords::reqid, {0, 0xffffffff},
                      "SAs of this number are used; 0: any between the tunnel's ends"),
       option::flag("ah_around", &PolicyWords::ah_around,
                    "AH in transport mode is around ESP: both protect the packet (RFC 4301)"),
       option::number("ah_reqid", &PolicyWords::ah_reqid, {0, 0xffffffff},
                      "and its SAs have this number; 0: any between the same ends")});
  return all;
}

std::optional<packet::IpPrefix> read_prefix(Settings& section, const char* key, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto prefix = packet::IpPrefix::parse(text);
  if (!prefix) {
    section.error(key, prefix.error().message);
    return std::nullopt;
  }
  return *prefix;
}

void read_template(Settings& section, const PolicyWords& words, ipsec::Policy& policy) {
  ipsec::Template way{.protocol = words.protocol, .mode = words.mode, .reqid = static_cast<std::uint32_t>(words.reqid)};
  const auto source = read_end(section, "tunnel_source", words.tunnel_source);
  const auto destination = read_end(section, "tunnel_destination", words.tunnel_destination);
  if (words.mode == Mode::transport) {
    if (source || destination) {
      section.error(source ? "tunnel_source" : "tunnel_destination", "is of tunnel mode alone");
    }
  } else if (words.tunnel_source.empty() || words.tunnel_destination.empty()) {
    section.error("", "`tunnel_source` and `tunnel_destination` are missing: the ends of the tunnel");
  } else if (source && destination) {
    way.source = *source;
    way.destination = *destination;
    if (source->family != destination->family) {
      section.error("tunnel_destination", "is of another family than `tunnel_source`");
    }
  }
  policy.templates.push_back(way);
  if (words.ah_around) {
    if (words.protocol != Protocol::esp) section.error("ah_around", "needs `protocol = \"esp\"`: it is around that");
    policy.templates.push_back(
        {.protocol = Protocol::ah, .mode = Mode::transport, .reqid = static_cast<std::uint32_t>(words.ah_reqid)});
  } else if (words.ah_reqid != 0) {
    section.error("ah_reqid", "needs `ah_around = true` beside it");
  }
}

ipsec::PortMatch port_match(std::int64_t port) {
  return port < 0 ? ipsec::PortMatch{} : ipsec::PortMatch{static_cast<std::uint16_t>(port), 0xffff};
}

ipsec::Selector read_selector(Settings& section, const PolicyWords& words) {
  ipsec::Selector selector;
  const auto source = read_prefix(section, "source", words.source);
  const auto destination = read_prefix(section, "destination", words.destination);
  if (source && destination && source->address.family != destination->address.family) {
    section.error("destination", "is of another family than `source`");
  }
  if (source) selector.source = *source;
  if (destination) selector.destination = *destination;
  selector.protocol = static_cast<std::uint8_t>(words.upper);
  selector.source_port = port_match(words.source_port);
  selector.destination_port = port_match(words.destination_port);
  return selector;
}

// A policy that is for no packet at all. Those of ports without `upper_protocol` are seen by who calls.
void check_matches_something(Settings& section, const PolicyWords& words, int family) {
  constexpr std::int64_t most_of_icmp = 255;
  const auto protocol = static_cast<std::uint8_t>(words.upper);
  if (protocol != 0 && family == 6 && packet::is_ipv6_extension(protocol)) {
    section.error("upper_protocol",
                  "is an extension header of IPv6: the protocol of a packet is what comes behind those");
    return;
  }
  const bool is_icmp = protocol == packet::protocol_icmp || protocol == packet::protocol_icmpv6;
  const std::pair<const char*, std::int64_t> ports[] = {{"source_port", words.source_port},
                                                        {"destination_port", words.destination_port}};
  for (const auto& [key, port] : ports) {
    if (port < 0) continue;
    if (is_icmp && port > most_of_icmp) {
      section.error(key, "is ICMP's " + std::string(key == ports[0].first ? "type" : "code") +
                             ", which is 255 at most: no packet has it");
    } else if (!is_icmp && !packet::has_ports(protocol)) {
      section.error(key, "packets of upper_protocol " + std::to_string(protocol) +
                             " show no ports, so that the policy would be for none of them: leave it out");
    }
  }
}

// Policies of an IKE daemon have ranges of ports, too.
void read_mask(Settings& section, const char* port, const char* key, ipsec::PortMatch& match) {
  const auto mask = static_cast<std::uint16_t>(section.integer(key, 0xffff, 0, 0xffff));
  if (!section.has(key)) return;
  if (!section.has(port)) section.error(key, "needs `" + std::string(port) + "` beside it");
  match.mask = mask;
}

}  // namespace

OptionSection policy_section() {
  return option::section("[[ipsec.policy]]", policy_settings(), "Which packets are protected, and how.");
}

ipsec::Policy read_policy(Settings& section) {
  PolicyWords words;
  option::read(policy_settings(), section, words);
  ipsec::Policy policy{.direction = words.direction, .selector = {}, .action = words.action, .name = words.name};
  policy.priority = static_cast<std::uint32_t>(words.priority);
  policy.selector = read_selector(section, words);
  if ((words.source_port >= 0 || words.destination_port >= 0) && words.upper == 0) {
    section.error(words.source_port >= 0 ? "source_port" : "destination_port",
                  "needs `upper_protocol` beside it: ports are a protocol's");
  } else {
    check_matches_something(section, words, policy.selector.source.address.family);
  }
  if (policy.name.empty()) policy.name = policy.selector.str();
  if (!section.has("direction")) section.error("", direction_is_missing);
  if (policy.action == ipsec::Action::protect) {
    read_template(section, words, policy);
  } else {
    for (const char* const key :
         {"tunnel_source", "tunnel_destination", "reqid", "mode", "protocol", "ah_around", "ah_reqid"}) {
      if (section.has(key)) section.error(key, "is of action = \"protect\" alone");
    }
  }
  section.finish();
  return policy;
}

PolicyId read_policy_id(Settings& section) {
  PolicyWords words;
  option::read(policy_settings(), section, words);
  if (!section.has("direction")) section.error("", direction_is_missing);
  ipsec::Selector selector = read_selector(section, words);
  read_mask(section, "source_port", "source_port_mask", selector.source_port);
  read_mask(section, "destination_port", "destination_port_mask", selector.destination_port);
  section.finish();
  return {words.direction, selector.normal()};
}

}  // namespace sluice::function
