#include "function/inspect/rule_set_notes.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "match/rules/rule_notes.h"

namespace sluice::function {
namespace {

// "FILE:LINE: why"
std::string text_of(const match::RuleSet& set, const match::Refusal& refusal) {
  return set.place(refusal.file, refusal.line) + ": " + refusal.message;
}

// "2 rules of 9 do not load"
std::string how_many_do_not_load(const match::RuleSet& set) {
  const std::size_t refused = set.refused.size();
  return count_text(refused, "rule") + " of " + std::to_string(refused + set.rules.size()) +
         (refused == 1 ? " does" : " do") + " not load";
}

// Lines of suppress and event_filter that are about no rule; empty: there is none.
std::string note_of_lines(const match::RuleSet& set) {
  std::vector<const match::AlertLine*> idle;
  const auto look = [&](const match::AlertLine& line) {
    if (std::ranges::none_of(set.rules, [&](const match::Rule& rule) { return line.names(rule); })) {
      idle.push_back(&line);
    }
  };
  std::ranges::for_each(set.suppressions, look);
  std::ranges::for_each(set.event_filters, look);
  if (idle.empty()) return {};
  const match::AlertLine& first = *idle.front();
  return "inspect: " + count_text(idle.size(), "line") + " of suppress and event_filter " +
         (idle.size() == 1 ? "is" : "are") + " about no rule that loads, such as " + set.place(first.file, first.line) +
         ": gen_id " + std::to_string(first.gid) + ", sig_id " + std::to_string(first.sid);
}

// What the rule counts is of several flows, which may be several lanes'.
bool counts_across_flows(const match::Rule& rule) {
  const auto across = [](const auto& rate) { return rate.track != match::Track::by_flow; };
  return std::ranges::any_of(rule.thresholds, across) || std::ranges::any_of(rule.detection_filters, across);
}

// Rules and lines whose counts are not exact on so many lanes (rate_filter.h); empty: there is none.
std::string note_of_rates(const match::RuleSet& set, std::uint32_t lanes) {
  if (lanes < 2) return {};
  const auto first = std::ranges::find_if(set.rules, counts_across_flows);
  const auto rules = std::ranges::count_if(set.rules, counts_across_flows);
  const auto blocking = std::ranges::count_if(
      set.rules, [](const match::Rule& rule) { return counts_across_flows(rule) && match::blocks(rule.action); });
  const auto lines = std::ranges::count_if(set.event_filters, [](const match::EventFilter& line) {
    return line.threshold && line.threshold->track != match::Track::by_flow;
  });
  if (rules == 0 && lines == 0) return {};
  const std::string times = std::to_string(lanes) + " times";
  std::string text = "inspect: each of " + std::to_string(lanes) + " lanes counts by itself: ";
  if (rules != 0) {
    text += count_text(static_cast<std::size_t>(rules), "rule") + " with detection_filter or threshold, such as " +
            set.place(first->file, first->line) + ", may need up to " + times + " as many matches to take effect" +
            (blocking == 0 ? "" : " (" + std::to_string(blocking) + " of them to drop or reject)") +
            ", or alert up to " + times + " as often";
  }
  if (lines != 0) {
    text += (rules == 0 ? "" : ", and ") + count_text(static_cast<std::size_t>(lines), "line") +
            " of event_filter may let up to " + times + " as many alerts by, or need as many more for one";
  }
  return text + "; where that is not wanted set lanes = 1, and queues = 1, for each port";
}

}  // namespace

std::string count_text(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::vector<std::string> notes_of(const match::RuleSet& set, std::uint32_t lanes) {
  std::vector<std::string> notes;
  if (!set.refused.empty()) {
    notes.push_back("inspect: " + how_many_do_not_load(set) + ", such as " + text_of(set, set.refused.front()) +
                    "; 'sluice rules' says why for each");
  }
  for (const match::RuleNotes& of_rules : match::notes_on(set)) {
    notes.push_back("inspect: " + of_rules.text(set) +
                    (of_rules.rules.size() == 1 ? "" : "; 'sluice rules --list' names each"));
  }
  for (const std::uint32_t file : set.silent_files) {
    notes.push_back("inspect: " + set.files[file] + " has no line but empty ones and comments");
  }
  if (std::ranges::find(set.ignored_words, "rate_filter") != set.ignored_words.end()) {
    notes.emplace_back("inspect: lines of rate_filter are not followed: rules keep the action that they have");
  }
  if (std::string note = note_of_lines(set); !note.empty()) notes.push_back(std::move(note));
  if (std::string note = note_of_rates(set, lanes); !note.empty()) notes.push_back(std::move(note));
  if (const std::size_t overridden = set.overridden.size(); overridden != 0) {
    const match::OverriddenVariable& first = set.overridden.front();
    notes.push_back("inspect: [inspect] variables stands before " + count_text(overridden, "line") +
                    " of the rules' files, such as " + set.place(first.file, first.line) + ", which sets " +
                    first.name);
  }
  for (const match::UnusedVariable& one : set.unused) {
    notes.push_back("inspect: variable " + one.name + " is set but no rule uses it" + one.hint);
  }
  return notes;
}

std::string note_of_fewer(std::size_t now, std::size_t before) {
  if (2 * now >= before) return {};
  return "inspect: " + count_text(now, "rule") + (now == 1 ? " is" : " are") + " in force, and " +
         std::to_string(before) + " were before: was a file cut off, or not written whole yet?";
}

std::string why_none(const match::RuleSet& set) {
  if (set.refused.empty()) {
    return "there is no rule in " + set.files.front() +
           (set.commented_out == 0 ? "" : " but " + std::to_string(set.commented_out) + " that are commented out");
  }
  return "none of " + count_text(set.refused.size(), "rule") + " loads, such as " + text_of(set, set.refused.front());
}

std::string why_not_all(const match::RuleSet& set) {
  constexpr std::size_t most = 3;
  std::string text = how_many_do_not_load(set);
  for (std::size_t r = 0; r < std::min(most, set.refused.size()); ++r) {
    text += (r == 0 ? ": " : "; ") + text_of(set, set.refused[r]);
  }
  if (set.refused.size() > most) text += "; and " + count_text(set.refused.size() - most, "other");
  return text + "; 'sluice rules --list' names each: correct them, leave them out, or set strict = false";
}

std::string where_from(const std::vector<std::string>& files) {
  std::error_code fault;
  for (const std::filesystem::path file : files) {
    if (file.is_absolute() || std::filesystem::exists(file, fault)) continue;
    return "; names are as seen from where sluice was started, " + std::filesystem::current_path(fault).string();
  }
  return {};
}

}  // namespace sluice::function
