// The element's named sets, which change while a list is in force, and where its lines go.
#include <rte_cycles.h>

#include <algorithm>

#include "base/quote.h"
#include "base/spelling.h"
#include "function/acl/acl.h"
#include "lookup/acl/rule_text.h"

namespace sluice::function {

using lookup::acl::AclRule;
using lookup::acl::NamedSet;
using lookup::acl::SetEntry;
using lookup::acl::SetTables;

namespace {

// Of the texts, or an Error that names the first that cannot be, and its place where there are several.
Expected<std::vector<SetEntry>> entries_of(const NamedSet& set, const std::vector<std::string>& texts) {
  std::vector<SetEntry> entries;
  entries.reserve(texts.size());
  for (const std::string& text : texts) {
    auto entry = parse_set_entry(set.type, text);
    if (!entry) {
      const std::string place = std::to_string(entries.size() + 1) + " of " + std::to_string(texts.size());
      return make_error((texts.size() == 1 ? "" : "entry " + place + ", ") + in_quotes(text) + ": " +
                        entry.error().message + "; nothing is changed");
    }
    entries.push_back(*entry);
  }
  lookup::acl::tidy(entries);
  return entries;
}

std::string counted(std::size_t count, const char* one, const char* more) {
  return std::to_string(count) + (count == 1 ? one : more);
}

}  // namespace

// Where a list's lines go: to the log of the list before it, if that is the same.
Expected<void> Acl::add_log(const AclOptions& options, RuleSet& set) const {
  const auto logs = [](const AclRule& rule) { return rule.action.log; };
  if (std::none_of(options.rules.begin(), options.rules.end(), logs)) return {};
  if (!logs_.empty() && logs_.back()->settings() == options.log) {
    set.log = logs_.back();
  } else {
    auto log = AclLog::open(options.log, lanes_);
    if (!log) return tl::unexpected(log.error());
    set.log = std::move(*log);
  }
  std::uint64_t number = 0;
  const AclRule* before = nullptr;
  for (std::size_t place = 0; place < options.rules.size(); ++place) {
    const AclRule& rule = options.rules[place];
    const bool has_text = rule.text != AclRule::no_text;
    const bool is_same = before != nullptr && has_text && rule.text == before->text;
    number += is_same ? 0 : 1;
    before = &rule;
    if (!rule.action.log) continue;
    if (!is_same) {
      auto logged = std::make_shared<LoggedRule>(options.log.per_second, rte_get_tsc_hz());
      logged->number = number;
      logged->action = action_text(rule.action);
      if (has_text) {
        logged->name = options.texts[rule.text].name;
        logged->comment = options.texts[rule.text].comment;
      }
      set.logged_rules.push_back(std::move(logged));
    }
    set.verdicts[place].logged = static_cast<std::uint32_t>(set.logged_rules.size());
  }
  return {};
}

// A set whose configuration is as it was keeps what has become of it.
std::vector<Acl::SetState> Acl::sets_after(const AclOptions& options) const {
  std::vector<SetState> after;
  for (const NamedSet& configured : options.sets) {
    SetState state{configured, configured.entries};
    for (const SetState& before : sets_) {
      if (before.set.name == configured.name && before.set.type == configured.type &&
          before.configured == configured.entries) {
        state.set.entries = before.set.entries;
      }
    }
    after.push_back(std::move(state));
  }
  std::uint32_t counted_text = AclRule::no_text;
  std::vector<bool> asked(after.size());
  const auto end_rule = [&] {
    for (std::size_t s = 0; s < asked.size(); ++s) after[s].uses += asked[s] ? 1 : 0;
    asked.assign(asked.size(), false);
  };
  for (const AclRule& rule : options.rules) {
    if (rule.text != counted_text) end_rule();
    counted_text = rule.text;
    for (const auto& use : options.plan.uses()) {
      if ((rule.tags.mask & use.bit) != 0) asked[use.set] = true;
    }
  }
  end_rule();
  return after;
}

// What a reload's answer says of changes that it ends.
std::string Acl::undone(const std::vector<SetState>& after) const {
  std::string names;
  for (const SetState& before : sets_) {
    const auto same = [&](const SetState& one) { return one.set.name == before.set.name; };
    const auto found = std::find_if(after.begin(), after.end(), same);
    const bool stays = found != after.end() && found->set.entries == before.set.entries;
    if (before.changed() && !stays) names += (names.empty() ? "" : ", ") + before.set.name;
  }
  return names.empty() ? names : "; what was changed by `ctl acl set` is gone of " + names;
}

Expected<std::vector<engine::NamedSets::Entry>> Acl::list_sets(std::string_view name, std::uint32_t limit) const {
  const std::lock_guard lock(sets_mutex_);
  std::vector<Entry> all;
  std::vector<std::string> known;
  for (const SetState& state : sets_) {
    known.push_back(state.set.name);
    if (!name.empty() && state.set.name != name) continue;
    Entry& entry = all.emplace_back();
    entry.name = state.set.name;
    entry.type = name_of(state.set.type);
    entry.count = state.set.entries.size();
    entry.uses = state.uses;
    entry.changed = state.changed();
    entry.file = state.set.file;
    const std::size_t shown = std::min<std::size_t>(limit, state.set.entries.size());
    for (std::size_t i = 0; i < shown; ++i) entry.entries.push_back(state.set.entries[i].str());
  }
  if (!name.empty() && all.empty()) {
    return make_error("there is no set \"" + std::string(name) + "\"" + spelling_hint(std::string(name), known));
  }
  return all;
}

Expected<std::string> Acl::add_to_set(std::string_view name, const std::vector<std::string>& entries) {
  return change_set(name, entries, true);
}

Expected<std::string> Acl::remove_from_set(std::string_view name, const std::vector<std::string>& entries) {
  return change_set(name, entries, false);
}

Expected<std::string> Acl::change_set(std::string_view name, const std::vector<std::string>& texts, bool add) {
  if (auto known = list_sets(name, 0); !known) return tl::unexpected(known.error());
  const auto state =
      std::find_if(sets_.begin(), sets_.end(), [&](const SetState& one) { return one.set.name == name; });
  const auto wanted = entries_of(state->set, texts);
  if (!wanted) return tl::unexpected(wanted.error());
  const std::vector<SetEntry>& before = state->set.entries;
  const auto is_there = [&](const SetEntry& one) { return std::binary_search(before.begin(), before.end(), one); };
  const auto there = static_cast<std::size_t>(std::count_if(wanted->begin(), wanted->end(), is_there));
  const std::size_t changed = add ? wanted->size() - there : there, rest = wanted->size() - changed;
  const std::size_t count = add ? before.size() + changed : before.size() - changed;
  if (add && count > lookup::acl::most_set_entries) {
    return make_error("a set has " + std::to_string(lookup::acl::most_set_entries) +
                      " entries at most, and with these " + std::string(name) + " would have " + std::to_string(count) +
                      "; nothing is changed");
  }
  std::string text = counted(changed, " entry", " entries") + (add ? " added to " : " removed from ");
  text.append(name).append(", which has ").append(std::to_string(count)).append(" now");
  if (rest != 0) {
    text.append("; ").append(std::to_string(rest)).append(rest == 1 ? " was " : " were ");
    text.append(add ? "there already" : "not there: what is removed is written as the entry is");
  }
  if (changed == 0) return text;
  std::vector<SetEntry> after;
  after.reserve(count);
  add ? std::set_union(before.begin(), before.end(), wanted->begin(), wanted->end(), std::back_inserter(after))
      : std::set_difference(before.begin(), before.end(), wanted->begin(), wanted->end(), std::back_inserter(after));
  // All that may throw comes before anything changes, so that what is listed is what frames are judged by.
  if (newest_->sets) {
    std::vector<NamedSet> sets;
    for (const SetState& one : sets_) sets.push_back(one.set);
    NamedSet& fresh = sets[static_cast<std::size_t>(state - sets_.begin())];
    fresh.entries = std::move(after);
    auto tables = std::make_unique<SetTables>(SetTables::build(sets, newest_->plan));
    newest_->sets->reclaim();
    newest_->sets->publish(std::move(tables));
    newest_->sets->reclaim();
    after = std::move(fresh.entries);
  }
  const std::lock_guard lock(sets_mutex_);
  state->set.entries.swap(after);
  return text;
}

}  // namespace sluice::function
