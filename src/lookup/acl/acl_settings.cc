#include "lookup/acl/acl_settings.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "lookup/acl/acl_names.h"
#include "lookup/acl/rule_text.h"
#include "lookup/acl/rule_values.h"

namespace sluice::lookup::acl {

namespace {

constexpr std::size_t longest_comment = 200;

bool is_icmp(const MaskedByte& protocol) {
  return protocol == MaskedByte{protocol_icmp, 0xff} || protocol == MaskedByte{protocol_icmpv6, 0xff};
}

// Frames of a protocol without ports have port 0: the rule would match none of them, or all.
bool check_ports(Settings& section, std::string_view key, const std::vector<PortChoice>& ports,
                 const std::vector<ProtocolChoice>& protocols) {
  if (ports.size() == 1 && ports[0].ports == PortRange{} && ports[0].tags.mask == 0) return true;
  for (const ProtocolChoice& one : protocols) {
    if (has_ports(one.protocol)) continue;
    std::string texts;
    for (const std::string& text : section.values("protocol")) texts.append(texts.empty() ? "" : ", ").append(text);
    section.error(key, "protocol \"" + texts + "\" has no ports: leave it out" +
                           (is_icmp(one.protocol) ? ", or write icmp_type" : "") +
                           "; tcp, udp, sctp, \"33\" (DCCP) and \"136\" (UDP-Lite) have some");
    return false;
  }
  return true;
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
                                std::pair{"reject", ActionKind::reject}, std::pair{"mark", ActionKind::mark},
                                std::pair{"police", ActionKind::police}};
  Action action;
  const std::string kind = rule.choice("action", "permit", {"permit", "deny", "reject", "mark", "police"});
  if (!rule.has("action")) {
    rule.error("action", "is missing: permit, deny, reject, mark or police");
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

std::string read_name(Settings& section, const RuleBook& book) {
  std::string name = section.text("name", "");
  if (!section.has("name")) return name;
  if (!is_good_name(name)) {
    section.error("name", "allowed is " + std::string(good_name_text));
  } else if (std::any_of(book.texts.begin(), book.texts.end(), [&](const RuleText& one) { return one.name == name; })) {
    section.error("name", "there is a rule of this name already");
  }
  return name;
}

std::string read_comment(Settings& section) {
  std::string comment = section.text("comment", "");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
  if (comment.size() > longest_comment || std::any_of(comment.begin(), comment.end(), is_control)) {
    section.error("comment", "allowed is one line of up to " + std::to_string(longest_comment) + " bytes");
  }
  return comment;
}

// Both, without a bit that the one wants set and the other not: no two choices are of the same bits.
MaskedTags both(const MaskedTags& a, const MaskedTags& b) {
  return {static_cast<std::uint16_t>(a.value | b.value), static_cast<std::uint16_t>(a.mask | b.mask)};
}

// Beyond it nothing is counted exactly: the lists of one rule could multiply to more than a number holds.
constexpr std::size_t most_counted = 1'000'000'000;

std::size_t capped_product(std::size_t a, std::size_t b) {
  return b != 0 && a > most_counted / b ? most_counted : a * b;
}

// Any address, family 0, goes with both.
std::size_t pairs_of_one_family(const std::vector<AddressChoice>& sources,
                                const std::vector<AddressChoice>& destinations) {
  const auto count = [](const std::vector<AddressChoice>& choices, int family) {
    return static_cast<std::size_t>(std::ranges::count_if(
        choices, [&](const AddressChoice& choice) { return choice.prefix.address.family == family; }));
  };
  std::size_t pairs = capped_product(count(sources, 0), destinations.size());
  for (const int family : {4, 6}) {
    pairs += capped_product(count(sources, family), count(destinations, family) + count(destinations, 0));
  }
  return std::min(pairs, most_counted);
}

// ICMP is IPv4's and ICMPv6 IPv6's: with addresses of the other family alone the rule would match no frame.
bool check_icmp_family(Settings& section, const std::vector<AddressChoice>& sources,
                       const std::vector<AddressChoice>& destinations, const std::vector<ProtocolChoice>& protocols) {
  const auto holds = [](const std::vector<AddressChoice>& choices, int family) {
    return std::ranges::any_of(choices, [&](const AddressChoice& choice) {
      return choice.prefix.address.family == 0 || choice.prefix.address.family == family;
    });
  };
  for (const ProtocolChoice& one : protocols) {
    if (!is_icmp(one.protocol)) return true;
    const int family = one.protocol.value == protocol_icmp ? 4 : 6;
    if (holds(sources, family) && holds(destinations, family)) return true;
  }
  if (protocols.empty() || sources.empty() || destinations.empty()) return true;  // is told
  const bool is_icmp4 = protocols.front().protocol.value == protocol_icmp;
  section.error("protocol", is_icmp4 ? "icmp is IPv4's, and the addresses are IPv6's: write icmpv6"
                                     : "icmpv6 is IPv6's, and the addresses are IPv4's: write icmp");
  return false;
}

// One rule for each of what the lists allow, in their order.
void multiply_out(Settings& section, const AclRule& rule, RuleValues& values, RuleBook& book) {
  const auto sources = values.addresses("source", Side::source);
  const auto destinations = values.addresses("destination", Side::destination);
  const auto source_ports = values.ports("source_port", Side::source);
  const auto destination_ports = values.ports("destination_port", Side::destination);
  const auto protocols = values.protocols();
  const auto ingresses = values.gates("ingress", false);
  const auto egresses = values.gates("egress", true);
  const bool ports_are_good = check_ports(section, "source_port", source_ports, protocols) &
                              check_ports(section, "destination_port", destination_ports, protocols);
  const std::size_t sizes[] = {source_ports.size(), destination_ports.size(), protocols.size(), ingresses.size(),
                               egresses.size()};
  std::size_t each = 1;
  for (const std::size_t size : sizes) each = capped_product(each, size);
  if (each == 0 || sources.empty() || destinations.empty() || !ports_are_good) return;  // is told
  const std::size_t count = capped_product(pairs_of_one_family(sources, destinations), each);
  if (count == 0) {
    section.error("destination", "is not of the source's family; make two rules of it");
    return;
  }
  if (!check_icmp_family(section, sources, destinations, protocols)) return;
  if (count > most_of_one_rule) {
    section.error("", "its lists multiply to " + std::to_string(count) + (count == most_counted ? " or more" : "") +
                          " rules, and " + std::to_string(most_of_one_rule) +
                          " are the most: put the longer ones into an [[acl.set]]");
    return;
  }
  for (const AddressChoice& source : sources) {
    for (const AddressChoice& destination : destinations) {
      const int a = source.prefix.address.family, b = destination.prefix.address.family;
      if (a != 0 && b != 0 && a != b) continue;
      for (const PortChoice& source_port : source_ports) {
        for (const PortChoice& destination_port : destination_ports) {
          for (const ProtocolChoice& protocol : protocols) {
            for (const MaskedTags& ingress : ingresses) {
              for (const MaskedTags& egress : egresses) {
                AclRule& one = book.rules.emplace_back(rule);
                one.source = source.prefix;
                one.destination = destination.prefix;
                one.source_port = source_port.ports;
                one.destination_port = destination_port.ports;
                one.protocol = protocol.protocol;
                one.flags = protocol.flags;
                one.tags =
                    both(both(both(source.tags, destination.tags), both(source_port.tags, destination_port.tags)),
                         both(ingress, egress));
              }
            }
          }
        }
      }
    }
  }
}

// What has to match, and what it is called; the rules are those of the book from `first` on.
struct Matched {
  RuleText text;
  std::size_t first;
};

Matched read_match(Settings& section, const ActionLimits& limits, RuleBook& book) {
  AclRule rule;
  rule.line = section.line("");
  Matched matched{{}, book.rules.size()};
  matched.text.name = read_name(section, book);
  matched.text.comment = read_comment(section);
  RuleValues values(section, limits, book);
  rule.text = static_cast<std::uint32_t>(book.texts.size());
  multiply_out(section, rule, values, book);
  const bool is_one = book.rules.size() == matched.first + 1 && book.rules.back().tags.mask == 0;
  matched.text.match = is_one ? match_text(book.rules.back()) : values.text();
  return matched;
}

void read_rule(Settings& section, const ActionLimits& limits, RuleBook& book) {
  Matched matched = read_match(section, limits, book);
  AclRule rule;
  rule.priority = static_cast<std::int32_t>(section.integer("priority", 0, -1'000'000'000, 1'000'000'000));
  rule.action = read_action(section, limits);
  rule.action.log = section.boolean("log", false);
  for (std::size_t r = matched.first; r < book.rules.size(); ++r) {
    book.rules[r].priority = rule.priority;
    book.rules[r].action = rule.action;
  }
  book.texts.push_back(std::move(matched.text));
  section.finish();
}

}  // namespace

void read_rules(Settings& acl, const ActionLimits& limits, RuleBook& book) {
  read_sets(acl, book.sets);
  for (Settings& section : acl.sections("rule")) read_rule(section, limits, book);
}

void read_matches(Settings& owner, RuleBook& book) {
  for (Settings& section : owner.sections("rule")) {
    const bool names_ports = section.has("ingress") || section.has("egress");
    for (const char* const key : {"ingress", "egress"}) {
      if (section.has(key)) section.error(key, "the ports are not a rule's here: leave it out");
    }
    if (names_ports) continue;
    (void)section.boolean("log", false);
    for (const char* const key : {"action", "log", "priority", "mark", "rate", "burst"}) {
      if (!section.has(key)) continue;
      if (key != std::string_view("log")) (void)section.values(key);
      section.error(key, "a rule only matches here: leave it out");
    }
    book.texts.push_back(read_match(section, {}, book).text);
    section.finish();
  }
}

Expected<void> read_rules_file(const std::string& path, const ActionLimits& limits, RuleBook& book) {
  Diagnostics diagnostics;
  auto file = Settings::from_file(path, diagnostics);
  if (!file) return tl::unexpected(file.error());
  Settings acl = file->section("acl");
  read_rules(acl, limits, book);
  acl.finish();
  file->finish();
  std::string lines;
  for (const std::string& line : diagnostics.lines) lines.append(lines.empty() ? "" : "\n").append(line);
  if (!diagnostics.ok()) return make_error(lines);
  return {};
}

std::vector<AclRule> read_rules(Settings& acl, const ActionLimits& limits) {
  RuleBook book;
  read_rules(acl, limits, book);
  return in_match_order(std::move(book.rules));
}

namespace {

// Whatever the rules name, so that it is no mistake of theirs: two more, so that each takes a tag.
std::vector<std::string> ports_of(const std::string& path) {
  Diagnostics ignored;  // said by who reads the rules
  std::vector<std::string> ports = {"one of these", "another of these"};
  auto file = Settings::from_file(path, ignored);
  if (!file) return ports;
  for (Settings& rule : file->section("acl").sections("rule")) {
    for (const char* const key : {"ingress", "egress"}) {
      for (const std::string& text : rule.values(key)) {
        std::string name = text.substr(text.starts_with('!') ? 1 : 0);
        if (std::ranges::find(ports, name) == ports.end()) ports.push_back(std::move(name));
      }
    }
  }
  return ports;
}

}  // namespace

Expected<std::vector<AclRule>> read_rules_file(const std::string& path, ActionLimits limits) {
  RuleBook book;
  if (limits.ports.empty()) limits.ports = ports_of(path);
  if (auto ok = read_rules_file(path, limits, book); !ok) return tl::unexpected(ok.error());
  for (const AclRule& rule : book.rules) {
    if (rule.tags.mask == 0) continue;
    return make_error(path + ":" + std::to_string(rule.line) +
                      ": [[acl.rule]]: asks for a set, ingress or egress, which only frames of a gateway have: leave "
                      "such rules out of what is read here");
  }
  return in_match_order(std::move(book.rules));
}

}  // namespace sluice::lookup::acl
