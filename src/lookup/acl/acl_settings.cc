#include "lookup/acl/acl_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "lookup/acl/acl_names.h"

namespace sluice::lookup::acl {

namespace {

template <std::size_t N>
std::optional<std::uint8_t> named(const std::array<NamedByte, N>& names, std::string_view text) {
  for (const NamedByte& name : names) {
    if (name.text == text) {
      return name.value;
    }
  }
  return std::nullopt;
}

template <typename Integer>
std::optional<Integer> number(std::string_view text) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                                   : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  while (text.ends_with(' ')) {
    text.remove_suffix(1);
  }
  return text;
}

packet::IpPrefix read_prefix(Settings& rule, std::string_view key) {
  const std::string text = rule.text(key, "");
  if (!rule.has(key)) {
    return {};
  }
  const auto prefix = packet::IpPrefix::parse(text);
  if (!prefix) {
    rule.error(key, prefix.error().message);
    return {};
  }
  return *prefix;
}

PortRange read_ports(Settings& rule, std::string_view key) {
  const std::string text = rule.text(key, "");
  if (!rule.has(key)) {
    return {};
  }
  const std::size_t dash = text.find('-');
  const auto first = number<std::uint16_t>(trimmed(std::string_view(text).substr(0, dash)));
  const auto last =
      dash == std::string::npos ? first : number<std::uint16_t>(trimmed(std::string_view(text).substr(dash + 1)));
  if (!first || !last || *first > *last) {
    rule.error(key, "a port from 0 to 65535 or a range of them, the lower first, such as \"443\" or \"1024-65535\"");
    return {};
  }
  return {*first, *last};
}

MaskedByte read_protocol(Settings& rule) {
  const std::string text = rule.text("protocol", "");
  if (!rule.has("protocol")) {
    return {};
  }
  auto value = named(protocol_names, text);
  value = value ? value : number<std::uint8_t>(text);
  if (!value) {
    rule.error("protocol", "tcp, udp, icmp, icmpv6, sctp, gre, esp, ah, or a number from 0 to 255 in quotes");
    return {};
  }
  return {*value, 0xff};
}

MaskedByte read_tcp_flags(Settings& rule, const MaskedByte& protocol) {
  const std::string text = rule.text("tcp_flags", "");
  if (!rule.has("tcp_flags")) {
    return {};
  }
  if (protocol != MaskedByte{protocol_tcp, 0xff}) {
    rule.error("tcp_flags", "only with protocol = \"tcp\"");
    return {};
  }
  MaskedByte flags;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    std::string_view name = trimmed(std::string_view(text).substr(from, comma - from));
    from = comma + 1;
    const bool is_set = !name.starts_with('!');
    name.remove_prefix(is_set ? 0 : 1);
    const auto bit = named(flag_names, name);
    if (!bit || (flags.mask & *bit) != 0) {
      rule.error("tcp_flags",
                 "fin, syn, rst, psh, ack, urg, ece, cwr, each once at most, with ! for one that is not set, such as "
                 "\"syn,!ack\"");
      return {};
    }
    flags.mask |= *bit;
    flags.value |= is_set ? *bit : std::uint8_t{0};
  }
  return flags;
}

bool is_icmp(const MaskedByte& protocol) {
  return protocol == MaskedByte{protocol_icmp, 0xff} || protocol == MaskedByte{protocol_icmpv6, 0xff};
}

MaskedByte read_icmp_type(Settings& rule, const MaskedByte& protocol) {
  const auto type = static_cast<std::uint8_t>(rule.integer("icmp_type", 0, 0, 255));
  if (!rule.has("icmp_type")) {
    return {};
  }
  if (!is_icmp(protocol)) {
    rule.error("icmp_type", "only with protocol = \"icmp\" or \"icmpv6\"");
    return {};
  }
  return {type, 0xff};
}

// Frames of a protocol without ports have port 0: the rule would match none of them, or all.
void check_ports(Settings& section, const AclRule& rule) {
  if (has_ports(rule.protocol)) return;
  for (const auto& [key, ports] :
       {std::pair{"source_port", rule.source_port}, std::pair{"destination_port", rule.destination_port}}) {
    if (ports == PortRange{}) continue;
    section.error(key, "protocol \"" + section.text("protocol", "") + "\" has no ports: leave it out" +
                           (is_icmp(rule.protocol) ? ", or write icmp_type" : "") +
                           "; tcp, udp, sctp, \"33\" (DCCP) and \"136\" (UDP-Lite) have some");
  }
}

// A key that belongs to one action.
void check_own(Settings& rule, std::string_view key, std::string_view action, bool is_that) {
  if (is_that && !rule.has(key)) {
    rule.error("action", "action = \"" + std::string(action) + "\" needs " + std::string(key));
  } else if (!is_that && rule.has(key)) {
    rule.error(key, "only with action = \"" + std::string(action) + "\"");
  }
}

Action read_action(Settings& rule, const ActionLimits& limits) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::array kinds = {std::pair{"permit", ActionKind::permit}, std::pair{"deny", ActionKind::deny},
                                std::pair{"mark", ActionKind::mark}, std::pair{"police", ActionKind::police}};
  Action action;
  const std::string kind = rule.choice("action", "permit", {"permit", "deny", "mark", "police"});
  if (!rule.has("action")) {
    rule.error("action", "is missing: permit, deny, mark or police");
  }
  for (const auto& [text, value] : kinds) {
    action.kind = kind == text ? value : action.kind;
  }
  action.mark = static_cast<std::uint32_t>(rule.integer("mark", 0, 0, limits.most_mark));
  action.rate_bits = static_cast<std::uint64_t>(rule.integer("rate", 0, 1, most));
  action.burst_bytes = rule.bytes("burst", 0);
  check_own(rule, "mark", "mark", action.kind == ActionKind::mark);
  check_own(rule, "rate", "police", action.kind == ActionKind::police);
  check_own(rule, "burst", "police", action.kind == ActionKind::police);
  if (rule.has("burst") && action.burst_bytes < limits.least_burst) {
    rule.error("burst", "a frame that is longer never passes: " + std::to_string(limits.least_burst) +
                            " bytes, one of the largest, at least");
  }
  return action;
}

AclRule read_rule(Settings& section, const ActionLimits& limits) {
  AclRule rule;
  rule.line = section.line("");
  rule.source = read_prefix(section, "source");
  rule.destination = read_prefix(section, "destination");
  const int source = rule.source.address.family;
  const int destination = rule.destination.address.family;
  if (source != 0 && destination != 0 && source != destination) {
    section.error("destination", "is not of the source's family; make two rules of it");
  }
  rule.source_port = read_ports(section, "source_port");
  rule.destination_port = read_ports(section, "destination_port");
  rule.protocol = read_protocol(section);
  check_ports(section, rule);
  const MaskedByte tcp_flags = read_tcp_flags(section, rule.protocol);
  const MaskedByte type = read_icmp_type(section, rule.protocol);
  rule.flags = tcp_flags.mask != 0 ? tcp_flags : type;  // of two protocols, so never both
  rule.priority = static_cast<std::int32_t>(section.integer("priority", 0, -1'000'000'000, 1'000'000'000));
  rule.action = read_action(section, limits);
  section.finish();
  return rule;
}

}  // namespace

std::vector<AclRule> read_rules(Settings& acl, const ActionLimits& limits) {
  std::vector<AclRule> rules;
  for (Settings& section : acl.sections("rule")) {
    rules.push_back(read_rule(section, limits));
  }
  return in_match_order(std::move(rules));
}

Expected<std::vector<AclRule>> read_rules_file(const std::string& path, const ActionLimits& limits) {
  Diagnostics diagnostics;
  auto file = Settings::from_file(path, diagnostics);
  if (!file) {
    return tl::unexpected(file.error());
  }
  Settings acl = file->section("acl");
  std::vector<AclRule> rules = read_rules(acl, limits);
  acl.finish();
  file->finish();
  if (!diagnostics.ok()) {
    std::string lines;
    for (const std::string& line : diagnostics.lines) {
      lines += (lines.empty() ? "" : "\n") + line;
    }
    return make_error(lines);
  }
  return rules;
}

}  // namespace sluice::lookup::acl
