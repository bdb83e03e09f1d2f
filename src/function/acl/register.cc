// The element's entry in the list of elements: reads [acl].
#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

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

Expected<std::unique_ptr<engine::Element>> make_acl(Settings& settings, const engine::PortTable& ports) {
  const ActionLimits limits = limits_of(ports);
  Acl::AclOptions options;
  options.deny_others = settings.choice("default", "permit", {"permit", "deny"}) == "deny";
  options.log.eve = settings.text("eve", "");
  options.log.per_second = static_cast<std::uint32_t>(settings.integer("log_per_second", 10, 1, 100'000));
  options.log.ports = limits.ports;
  RuleBook book;
  lookup::acl::read_rules(settings, limits, book);
  const std::string path = settings.text("rules", "");
  if (!path.empty()) {
    // Among rules of one priority those of the configuration come first.
    std::vector<AclRule> more = rules_of_file(settings, path, limits, book);
    options.notes = notes_of(more, path);
    book.rules.insert(book.rules.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  add_notes_of(book.sets, options.notes);
  options.rules = lookup::acl::in_match_order(std::move(book.rules));
  options.texts = std::move(book.texts);
  options.sets = std::move(book.sets);
  options.plan = std::move(book.plan);
  if (options.rules.size() > lookup::acl::max_rules) {
    settings.error("rules", std::to_string(options.rules.size()) + " rules are more than there is room for, " +
                                std::to_string(lookup::acl::max_rules));
  }
  return std::make_unique<Acl>(std::move(options));
}

const bool registered = engine::register_element(
    {.name = "acl",
     .text = "permits, denies, rejects, marks or polices IPv4 and IPv6 frames by a list of rules",
     .make = make_acl,
     .find_trait = find_acl_type_trait});

}  // namespace
}  // namespace sluice::function
