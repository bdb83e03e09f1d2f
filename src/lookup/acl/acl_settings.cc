#include "lookup/acl/acl_settings.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "base/option.h"
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

// What is done where it matches.
struct Deed {
  std::int32_t priority = 0;
  Action action = {};
  const ActionLimits* limits = nullptr;
};

void read_kind(Settings& rule, Deed& to) {
  constexpr std::array kinds = {std::pair{"permit", ActionKind::permit}, std::pair{"deny", ActionKind::deny},
                                std::pair{"reject", ActionKind::reject}, std::pair{"mark", ActionKind::mark},
                                std::pair{"police", ActionKind::police}};
  const std::string kind = rule.choice("action", "permit", {"permit", "deny", "reject", "mark", "police"});
  if (!rule.has("action")) {
    rule.error("action", "is missing: permit, deny, reject, mark or police");
  }
  for (const auto& [text, value] : kinds) {
    to.action.kind = kind == text ? value : to.action.kind;
  }
}

void read_mark(Settings& rule, Deed& to) {
  to.action.mark = static_cast<std::uint32_t>(rule.integer("mark", 0, 0, to.limits->most_mark));
  check_own(rule, "mark", "mark", to.action.kind == ActionKind::mark);
}

void read_rate(Settings& rule, Deed& to) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  to.action.rate_bits = static_cast<std::uint64_t>(rule.integer("rate", 0, 1, most));
  check_own(rule, "rate", "police", to.action.kind == ActionKind::police);
}

void read_burst(Settings& rule, Deed& to) {
  to.action.burst_bytes = rule.bytes("burst", 0);
  check_own(rule, "burst", "police", to.action.kind == ActionKind::police);
  if (rule.has("burst") && to.action.burst_bytes < to.limits->least_burst) {
    rule.error("burst", "a frame that is longer never passes: " + std::to_string(to.limits->least_burst) +
                            " bytes, one of the largest, at least");
  }
}

// Of one rule among many: no value is shown as in force (`ctl acl list` has them). The action decides which of the keys
// behind it there are.
const std::vector<Option<Deed>>& deed_settings() {
  static const std::vector<Option<Deed>> all = option::all_reloadable<Deed>(
      {Option<Deed>{"priority",
                    "higher ones are matched first; those of one priority in the order of the file",
                    [](Settings& rule, Deed& to) {
                      to.priority =
                          static_cast<std::int32_t>(rule.integer("priority", 0, -1'000'000'000, 1'000'000'000));
                    },
                    {}}
           .takes("-1000000000 to 1000000000")
           .by_default("`0`"),
       Option<Deed>{"action",
                    "`\"deny\"`: dropped, counted as `acl_denied`; `\"reject\"`: not forwarded, and [its sender is "
                    "notified](acl.md#reject), counted as `acl_rejected`; `\"mark\"`: goes on with another DSCP; "
                    "`\"police\"`: goes on within a rate",
                    read_kind,
                    {}}
           .takes("`\"permit\"`, `\"deny\"`, `\"reject\"`, `\"mark\"`, `\"police\"`")
           .by_default(option::required),
       Option<Deed>{"mark", "of `\"mark\"`: the DSCP that the frame goes on with", read_mark, {}}
           .takes("0 to 63")
           .by_default("(required with `\"mark\"`)"),
       Option<Deed>{
           "rate",
           "of `\"police\"`: what whole frames may bring, over all lanes. What is beyond is dropped, counted as "
           "`acl_policed`",
           read_rate,
           {}}
           .takes("bits a second, from 1")
           .by_default("(required with `\"police\"`)"),
       Option<Deed>{"burst", "of `\"police\"`: how much may come at once", read_burst, {}}
           .takes("size, a frame of the largest MTU or more")
           .by_default("(required with `\"police\"`)"),
       Option<Deed>{"log",
                    "a line for frames that the rule decides",
                    [](Settings& rule, Deed& to) { to.action.log = rule.boolean("log", false); },
                    {}}
           .takes("`true`, `false`")
           .by_default("`false`")});
  return all;
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
  if (protocols.empty() || sources.empty() || destinations.empty()) return true;  // is reported
  const bool is_icmp4 = protocols.front().protocol.value == protocol_icmp;
  section.error("protocol", is_icmp4 ? "icmp is IPv4's, and the addresses are IPv6's: write icmpv6"
                                     : "icmpv6 is IPv6's, and the addresses are IPv4's: write icmp");
  return false;
}

// What has to match.
struct Match {
  RuleValues values;
  const RuleBook& book;
  RuleText text = {};
  std::vector<AddressChoice> sources = {}, destinations = {};
  std::vector<PortChoice> source_ports = {}, destination_ports = {};
  std::vector<ProtocolChoice> protocols = {};
  std::vector<MaskedTags> ingresses = {}, egresses = {};
};

using MatchOption = Option<Match>;

const std::vector<MatchOption>& name_settings() {
  static const std::vector<MatchOption> all = option::all_reloadable<Match>(
      {MatchOption{"name",
                   "name in lists and lines; of one rule alone",
                   [](Settings& section, Match& to) { to.text.name = read_name(section, to.book); },
                   {}}
           .takes(std::string(good_name_text))
           .by_default("none"),
       MatchOption{"comment",
                   "note in lists and lines",
                   [](Settings& section, Match& to) { to.text.comment = read_comment(section); },
                   {}}
           .takes("one line of up to " + std::to_string(longest_comment) + " bytes")
           .by_default("none")});
  return all;
}

MatchOption any_of(std::string key, std::string values, std::string text,
                   std::function<void(Settings& section, Match&)> read) {
  return MatchOption{std::move(key), std::move(text), std::move(read), {}}
      .takes(std::move(values))
      .by_default("any")
      .reloadable();
}

const std::vector<MatchOption>& match_settings() {
  // Sought together with the protocol, of which they are.
  const auto with_protocol = [](Settings&, Match&) {};
  static const std::vector<MatchOption> all = {
      any_of("source", "prefixes, addresses, ranges (`\"192.0.2.1-192.0.2.9\"`), sets (`\"@blocked\"`)",
             "where it is from, IPv4 or IPv6",
             [](Settings&, Match& to) { to.sources = to.values.addresses("source", Side::source); }),
      any_of("destination", "as `source`", "where it goes to",
             [](Settings&, Match& to) { to.destinations = to.values.addresses("destination", Side::destination); }),
      any_of("source_port", "ports (`443`), ranges (`\"1024-65535\"`), sets of ports",
             "port that it is from, with a `protocol` that has ports, or without one. A packet without ports has 0",
             [](Settings&, Match& to) { to.source_ports = to.values.ports("source_port", Side::source); }),
      any_of(
          "destination_port", "as `source_port`", "port that it goes to, likewise",
          [](Settings&, Match& to) { to.destination_ports = to.values.ports("destination_port", Side::destination); }),
      any_of("protocol", "`tcp`, `udp`, `icmp`, `icmpv6`, `sctp`, `gre`, `esp`, `ah`, 0 to 255",
             "protocol behind the IP header", [](Settings&, Match& to) { to.protocols = to.values.protocols(); }),
      any_of("tcp_flags", "flags with commas, `!` before those that are not set: `\"syn,!ack\"`",
             "flags that are set or not; with `protocol = \"tcp\"`; no list", with_protocol),
      any_of("icmp_type", "0 to 255, or names as nftables has them: `\"echo-request\"`",
             "type of ICMP, with `protocol = \"icmp\"` or `\"icmpv6\"`", with_protocol)};
  return all;
}

const std::vector<MatchOption>& gate_settings() {
  static const std::vector<MatchOption> all = {
      any_of("ingress", "names of ports", "port by which the frame comes in",
             [](Settings&, Match& to) { to.ingresses = to.values.gates("ingress", false); }),
      any_of("egress", "names of ports", "port by which it leaves ([what that is](acl.md#ports))",
             [](Settings&, Match& to) { to.egresses = to.values.gates("egress", true); })};
  return all;
}

// One rule for each of what the lists allow, in their order.
void multiply_out(Settings& section, const AclRule& rule, const Match& match, RuleBook& book) {
  const auto& sources = match.sources;
  const auto& destinations = match.destinations;
  const auto& protocols = match.protocols;
  const bool ports_are_good = check_ports(section, "source_port", match.source_ports, protocols) &
                              check_ports(section, "destination_port", match.destination_ports, protocols);
  const std::size_t sizes[] = {match.source_ports.size(), match.destination_ports.size(), protocols.size(),
                               match.ingresses.size(), match.egresses.size()};
  std::size_t each = 1;
  for (const std::size_t size : sizes) each = capped_product(each, size);
  if (each == 0 || sources.empty() || destinations.empty() || !ports_are_good) return;  // is reported
  const std::size_t count = capped_product(pairs_of_one_family(sources, destinations), each);
  if (count == 0) {
    section.error("destination", "is not of the source's family; make two rules of it");
    return;
  }
  if (!check_icmp_family(section, sources, destinations, protocols)) return;
  if (count > most_of_one_rule) {
    section.error("", "its lists multiply to " + std::to_string(count) + (count == most_counted ? " or more" : "") +
                          " rules, and " + std::to_string(most_of_one_rule) +
                          " are the most: put the longer ones into a set, " + section_of_sets(section));
    return;
  }
  for (const AddressChoice& source : sources) {
    for (const AddressChoice& destination : destinations) {
      const int a = source.prefix.address.family, b = destination.prefix.address.family;
      if (a != 0 && b != 0 && a != b) continue;
      for (const PortChoice& source_port : match.source_ports) {
        for (const PortChoice& destination_port : match.destination_ports) {
          for (const ProtocolChoice& protocol : protocols) {
            for (const MaskedTags& ingress : match.ingresses) {
              for (const MaskedTags& egress : match.egresses) {
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

// What it is called; the rules are those of the book from `first` on.
struct Matched {
  RuleText text;
  std::size_t first;
};

// `has_ports`: what matches may be said by the ports, too.
Matched read_match(Settings& section, const ActionLimits& limits, RuleBook& book, bool has_ports) {
  AclRule rule;
  rule.line = section.line("");
  const std::size_t first = book.rules.size();
  Match match{RuleValues(section, limits, book), book};
  option::read(name_settings(), section, match);
  option::read(match_settings(), section, match);
  if (has_ports) {
    option::read(gate_settings(), section, match);
  } else {
    match.ingresses = match.egresses = {MaskedTags{}};
  }
  rule.text = static_cast<std::uint32_t>(book.texts.size());
  multiply_out(section, rule, match, book);
  const bool is_one = book.rules.size() == first + 1 && book.rules.back().tags.mask == 0;
  match.text.match = is_one ? match_text(book.rules.back()) : match.values.text();
  return {std::move(match.text), first};
}

void read_rule(Settings& section, const ActionLimits& limits, RuleBook& book) {
  Matched matched = read_match(section, limits, book, true);
  Deed deed{.limits = &limits};
  option::read(deed_settings(), section, deed);
  for (std::size_t r = matched.first; r < book.rules.size(); ++r) {
    book.rules[r].priority = deed.priority;
    book.rules[r].action = deed.action;
  }
  book.texts.push_back(std::move(matched.text));
  section.finish();
}

// `none_of`: an example of keys that the section has.
std::string lists_text(const std::string& none_of) {
  return "All but `tcp_flags` may be a list, of which one has to hold: `destination_port = [80, 443]`. With `!` before "
         "each value none of them may hold: `" +
         none_of + "`. `\"!10.0.0.0/8\"` holds of IPv6 as well, unless the other address is of IPv4.";
}

template <class... Settings>
OptionSection section_of(std::string title, std::string text, const Settings&... settings) {
  OptionSection all{std::move(title), std::move(text), {}};
  (std::ranges::move(option::section("", settings).options, std::back_inserter(all.options)), ...);
  return all;
}

}  // namespace

void read_rules(Settings& acl, const ActionLimits& limits, RuleBook& book) {
  read_sets(acl, book.sets);
  for (Settings& section : acl.sections("rule")) read_rule(section, limits, book);
}

OptionSection rule_section(std::string title) {
  return section_of(std::move(title),
                    "A rule; all that is given must match. " + lists_text("ingress = [\"!wan\", \"!dmz\"]"),
                    name_settings(), match_settings(), gate_settings(), deed_settings());
}

OptionSection match_section(std::string title) {
  return section_of(std::move(title),
                    "Only frames that one of these matches. " + lists_text("destination_port = [\"!22\", \"!443\"]"),
                    name_settings(), match_settings());
}

void read_matches(Settings& owner, RuleBook& book) {
  for (Settings& section : owner.sections("rule")) {
    const bool names_ports = section.has("ingress") || section.has("egress");
    for (const char* const key : {"ingress", "egress"}) {
      if (section.has(key)) section.error(key, "the ports are not a rule's here: leave it out");
    }
    if (names_ports) continue;
    for (const char* const key : {"action", "log", "priority", "mark", "rate", "burst"}) {
      if (!section.has(key)) continue;
      if (key == std::string_view("log")) (void)section.boolean(key, false);
      if (key != std::string_view("log")) (void)section.values(key);
      section.error(key, "a rule only matches here: leave it out");
    }
    book.texts.push_back(read_match(section, {}, book, false).text);
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
