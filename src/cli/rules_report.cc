#include "cli/rules_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/text.h"
#include "match/rules/fast_pattern.h"
#include "match/rules/rule_notes.h"

namespace sluice::cli {
namespace {

using match::Refusal;
using match::RuleSet;

struct Reason {
  std::string text;
  std::size_t rules = 0;
  const Refusal* first = nullptr;
};

// The most frequent first; of equally frequent ones that which came first.
std::vector<Reason> reasons_of(const RuleSet& set) {
  std::vector<Reason> reasons;
  std::map<std::string_view, std::size_t> index;
  for (const Refusal& refusal : set.refused) {
    const auto [at, is_new] = index.try_emplace(refusal.reason, reasons.size());
    if (is_new) reasons.push_back({refusal.reason, 0, &refusal});
    ++reasons[at->second].rules;
  }
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.rules > b.rules; });
  return reasons;
}

// Patterns of up to this many bytes, and more than those before.
constexpr std::array<std::size_t, 7> length_limits{1, 2, 3, 7, 15, 31, 65535};
constexpr std::array<const char*, 7> length_names{"1", "2", "3", "4-7", "8-15", "16-31", "32 and more"};

struct Patterns {
  std::size_t contents = 0;
  std::size_t negated = 0;
  std::size_t without = 0;  // rules
  std::array<std::size_t, length_limits.size()> lengths{};

  std::size_t short_ones() const { return lengths[0] + lengths[1] + lengths[2]; }
};

Patterns patterns_of(const RuleSet& set) {
  Patterns patterns;
  for (const match::Rule& rule : set.rules) {
    for (const match::Check& check : rule.checks) {
      const auto* const content = std::get_if<match::Content>(&check);
      if (content == nullptr) continue;
      ++patterns.contents;
      if (content->negated) ++patterns.negated;
    }
    const auto best = match::best_pattern(rule);
    if (!best) {
      ++patterns.without;
      continue;
    }
    const auto* const at = std::lower_bound(length_limits.begin(), length_limits.end(), best->bytes.size());
    ++patterns.lengths[static_cast<std::size_t>(at - length_limits.begin())];
  }
  return patterns;
}

std::vector<std::pair<std::string, std::size_t>> actions_of(const RuleSet& set) {
  std::map<match::Action, std::size_t> counts;
  for (const match::Rule& rule : set.rules) ++counts[rule.action];
  std::vector<std::pair<std::string, std::size_t>> actions;
  for (const auto& [action, count] : counts) actions.emplace_back(match::name_of(action), count);
  return actions;
}

std::string totals_text(const RuleSet& set) {
  const std::size_t total = set.rules.size() + set.refused.size();
  std::string text = counted_text(total, "rule") + " in " + counted_text(set.files.size(), "file");
  if (set.commented_out > 0) text += fmt::format(", {} commented out", set.commented_out);
  const double share =
      100.0 * static_cast<double>(set.rules.size()) / static_cast<double>(std::max<std::size_t>(total, 1));
  text += fmt::format("\n{} load{}, {} not\n", set.rules.size(), total == 0 ? "" : fmt::format(" ({:.1f} %)", share),
                      set.refused.size());
  for (const auto& [action, count] : actions_of(set)) text += fmt::format("  {} {}\n", action, count);
  if (set.ignored > 0) {
    text += fmt::format("{} by which Snort configures itself, not followed: {}\n", counted_text(set.ignored, "line"),
                        fmt::join(set.ignored_words, ", "));
  }
  if (const std::size_t lines = set.suppressions.size() + set.event_filters.size(); lines > 0) {
    text += fmt::format("{} that keep alerts back: {} of suppress, {} of event_filter\n", counted_text(lines, "line"),
                        set.suppressions.size(), set.event_filters.size());
  }
  for (const match::OverriddenVariable& one : set.overridden) {
    text += fmt::format("{}: {} stays as --var sets it\n", set.place(one.file, one.line), one.name);
  }
  for (const match::RuleNotes& notes : match::notes_on(set)) text += notes.text(set) + "\n";
  for (const match::UnusedVariable& one : set.unused) {
    text += fmt::format("variable {} is set but no rule uses it{}\n", one.name, one.hint);
  }
  return text;
}

std::string reasons_text(const RuleSet& set, bool list) {
  Table table({">rules", "do not load, because", "the first"});
  for (const Reason& reason : reasons_of(set)) {
    table.add({std::to_string(reason.rules), reason.text, set.place(reason.first->file, reason.first->line)});
  }
  if (table.empty()) return {};
  return "\n" + table.str() + (list ? "" : "'...' and N stand for what differs; --list says each in full\n");
}

std::string patterns_text(const RuleSet& set) {
  const Patterns patterns = patterns_of(set);
  std::string text =
      fmt::format("\n{} ({} negated) in the rules that load\n{} without a pattern for the matcher\n",
                  counted_text(patterns.contents, "content"), patterns.negated, counted_text(patterns.without, "rule"));
  text += fmt::format("{} below 4 bytes, which decide what matching costs\n\n",
                      counted_text(patterns.short_ones(), "pattern"));
  Table table({"bytes of the pattern", ">rules"});
  for (std::size_t i = 0; i < length_names.size(); ++i) {
    table.add({length_names[i], std::to_string(patterns.lengths[i])});
  }
  return text + table.str();
}

std::string list_text(const RuleSet& set) {
  std::string text = set.refused.empty() ? "" : "\n";
  for (const Refusal& refusal : set.refused) {
    const std::string sid = refusal.sid == 0 ? "" : fmt::format("sid {}: ", refusal.sid);
    text += set.place(refusal.file, refusal.line) + ": " + sid + refusal.message + "\n";
  }
  for (const match::RuleNotes& notes : match::notes_on(set)) {
    text += fmt::format("\n{} {}:\n", notes.rules.size(), notes.rules.size() == 1 ? notes.one : notes.several);
    for (const match::RuleNote& note : notes.rules) {
      text += fmt::format("{}: sid {}: {}\n", set.place(note.file, note.line), note.sid, note.message);
    }
  }
  return text;
}

}  // namespace

std::string rules_text(const RuleSet& set, bool list) {
  return totals_text(set) + reasons_text(set, list) + patterns_text(set) + (list ? list_text(set) : "");
}

std::string rules_json(const RuleSet& set) {
  nlohmann::ordered_json json;
  json["files"] = set.files;
  json["rules"] = set.rules.size() + set.refused.size();
  json["load"] = set.rules.size();
  json["refused"] = set.refused.size();
  json["commented_out"] = set.commented_out;
  json["ignored_lines"] = set.ignored;
  json["suppressions"] = set.suppressions.size();
  json["event_filters"] = set.event_filters.size();
  json["overridden_variables"] = nlohmann::ordered_json::array();
  for (const match::OverriddenVariable& one : set.overridden) {
    json["overridden_variables"].push_back({{"file", set.files[one.file]}, {"line", one.line}, {"name", one.name}});
  }
  json["unused_variables"] = nlohmann::ordered_json::array();
  for (const match::UnusedVariable& one : set.unused) json["unused_variables"].push_back(one.name);
  json["noted"] = nlohmann::ordered_json::object();
  for (const match::RuleNotes& notes : match::notes_on(set)) {
    for (const match::RuleNote& note : notes.rules) {
      json["noted"][std::string(notes.name)].push_back(
          {{"file", set.files[note.file]}, {"line", note.line}, {"sid", note.sid}, {"message", note.message}});
    }
  }
  json["actions"] = nlohmann::ordered_json::object();
  for (const auto& [action, count] : actions_of(set)) json["actions"][action] = count;
  json["reasons"] = nlohmann::ordered_json::array();
  for (const Reason& reason : reasons_of(set))
    json["reasons"].push_back({{"reason", reason.text}, {"rules", reason.rules}});
  const Patterns patterns = patterns_of(set);
  json["contents"] = patterns.contents;
  json["negated_contents"] = patterns.negated;
  json["rules_without_pattern"] = patterns.without;
  json["patterns_below_4_bytes"] = patterns.short_ones();
  json["pattern_lengths"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < length_names.size(); ++i) json["pattern_lengths"][length_names[i]] = patterns.lengths[i];
  json["not_loaded"] = nlohmann::ordered_json::array();
  for (const Refusal& refusal : set.refused) {
    json["not_loaded"].push_back({{"file", set.files[refusal.file]},
                                  {"line", refusal.line},
                                  {"gid", refusal.gid},
                                  {"sid", refusal.sid},
                                  {"commented_out", refusal.commented_out},
                                  {"message", refusal.message}});
  }
  return json.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

int rules_status(const RuleSet& set) {
  return std::any_of(set.refused.begin(), set.refused.end(), [](const Refusal& one) { return !one.commented_out; }) ? 1
                                                                                                                    : 0;
}

}  // namespace sluice::cli
