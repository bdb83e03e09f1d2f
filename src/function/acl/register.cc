// The element's entry in the list of elements: reads [acl].
#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "base/option.h"
#include "engine/element.h"
#include "engine/port_table.h"
#include "function/acl/acl.h"
#include "function/acl/acl_type.h"
#include "lookup/acl/acl_settings.h"
#include "lookup/acl/classbench.h"

namespace sluice::function {
namespace {

using lookup::acl::AclRule;
using lookup::acl::ActionLimits;

using lookup::acl::RuleBook;

// Adds those of the file that `rules` names; after a mistake, which goes to the settings with a line for each, none.
std::vector<AclRule> rules_of_file(Settings& settings, const std::string& path, const ActionLimits& limits,
                                   RuleBook& book) {
  std::vector<AclRule> rules;
  Expected<void> read;
  if (path.ends_with(".toml")) {
    std::vector<AclRule> before = std::exchange(book.rules, {});
    read = lookup::acl::read_rules_file(path, limits, book);
    rules = std::exchange(book.rules, std::move(before));
  } else if (auto filters = lookup::acl::read_classbench(path)) {
    rules = std::move(*filters);
  } else {
    read = tl::unexpected(filters.error());
  }
  if (read && rules.empty()) settings.error("rules", "there is no rule in " + path + ": leave `rules` out for none");
  if (read) return rules;
  std::istringstream lines(read.error().message);
  for (std::string line; std::getline(lines, line);) settings.error("rules", line);
  return {};
}

// Of rules that can only be a mistake of who wrote them, and that a generator writes, too.
std::vector<std::string> notes_of(const std::vector<AclRule>& rules, const std::string& path) {
  std::uint32_t count = 0, first = 0;
  for (const AclRule& rule : rules) {
    if (!lookup::acl::names_ports_in_vain(rule)) continue;
    first = count++ == 0 ? rule.line : first;
  }
  if (count == 0) return {};
  return {"acl: " + std::to_string(count) + (count == 1 ? " filter names" : " filters name") +
          " ports of a protocol that has none, such as " + path + ":" + std::to_string(first) +
          ": they match its frames only where both ranges have 0 in them"};
}

// A file that is cut off, or not written yet, looks like one that is empty on purpose, to be filled by ctl.
void add_notes_of(const std::vector<lookup::acl::NamedSet>& sets, std::vector<std::string>& notes) {
  for (const lookup::acl::NamedSet& set : sets) {
    if (set.file.empty() || !set.entries.empty()) continue;
    notes.push_back("acl: the set '" + set.name + "' is empty, for " + set.file +
                    " has no entries: no rule that names it matches until some are added");
  }
}

ActionLimits limits_of(const engine::PortTable& ports) {
  constexpr std::uint64_t ethernet = 14;
  ActionLimits limits{.most_mark = Acl::most_dscp};
  for (std::size_t port = 0; port < ports.size(); ++port) {
    limits.least_burst = std::max(limits.least_burst, ports[port].mtu + ethernet);
    limits.ports.push_back(ports[port].name);
  }
  return limits;
}

struct Reading {
  Acl::AclOptions options;
  std::string file = {};  // of rules
};

const std::vector<Option<Reading>>& settings_of_acl() {
  static const std::vector<Option<Reading>> all = option::all_reloadable<Reading>(
      {option::word<Reading>(
           "default", [](auto& all) -> auto& { return all.options.deny_others; }, {{"permit", false}, {"deny", true}},
           "what becomes of IPv4 and IPv6 frames that no rule matches. What is not IP, such as ARP, always goes on"),
       option::text<Reading>(
           "eve", [](auto& all) -> auto& { return all.options.log.eve; },
           "a file of EVE JSON lines for rules with `log`, which is [no file that is something "
           "else](inspect.md#files); `\"-\"`: standard output; `\"\"`: they go to the program's log")
           .takes("path"),
       option::number<Reading>(
           "log_per_second", [](auto& all) -> auto& { return all.options.log.per_second; },
           {1, 100'000, "lines a second"},
           "lines of each rule with `log`, over all lanes; as many at once after a pause. What is beyond is counted"),
       option::text("rules", &Reading::file,
                    "a file of more rules: `[[acl.rule]]` and nothing else when its name ends in `.toml`, otherwise "
                    "ClassBench filters, which all permit. Of rules with one priority those of the configuration come "
                    "before those of the file")
           .takes("path")});
  return all;
}

Expected<std::unique_ptr<engine::Element>> make_acl(Settings& settings, const engine::PortTable& ports) {
  const ActionLimits limits = limits_of(ports);
  Reading reading;
  option::read(settings_of_acl(), settings, reading);
  Acl::AclOptions& options = reading.options;
  options.log.ports = limits.ports;
  RuleBook book;
  lookup::acl::read_rules(settings, limits, book);
  if (!reading.file.empty()) {
    // Among rules of one priority those of the configuration come first.
    std::vector<AclRule> more = rules_of_file(settings, reading.file, limits, book);
    options.notes = notes_of(more, reading.file);
    book.rules.insert(book.rules.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  add_notes_of(book.sets, options.notes);
  options.rules = lookup::acl::in_match_order(std::move(book.rules));
  options.texts = std::move(book.texts);
  options.sets = std::move(book.sets);
  options.plan = std::move(book.plan);
  if (options.rules.size() > lookup::acl::max_rules) {
    settings.error("rules", std::to_string(options.rules.size()) + " rules are more than there is capacity for, " +
                                std::to_string(lookup::acl::max_rules));
  }
  return std::make_unique<Acl>(std::move(options));
}

std::vector<OptionSection> acl_sections() {
  return {option::section("[acl]", settings_of_acl(),
                          "A packet filter without state, [not a firewall yet](acl.md#stateless): the first rule that "
                          "matches a frame decides. What rules see of a frame: [acl.md](acl.md)."),
          lookup::acl::rule_section("[[acl.rule]]"), lookup::acl::set_section("[[acl.set]]")};
}

const bool registered = engine::register_element(
    {.name = "acl",
     .text = "permits, denies, rejects, marks or polices IPv4 and IPv6 frames by a list of rules",
     .make = make_acl,
     .options = acl_sections,
     .find_trait = find_acl_type_trait});

}  // namespace
}  // namespace sluice::function
