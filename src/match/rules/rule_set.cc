// Files of rules: lines, includes, variables, and which of two rules with one sid stays.
#include "match/rules/rule_set.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/quote.h"
#include "base/spelling.h"
#include "match/rules/lexer.h"
#include "match/rules/rule_reader.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

constexpr std::size_t largest_file = 256 << 20;
constexpr std::size_t longest_line = 64 << 10;
constexpr unsigned deepest_include = 8;

// By these Snort configures itself.
constexpr std::array<std::string_view, 10> snort_words{
    "config", "preprocessor", "dynamicpreprocessor", "dynamicengine",  "dynamicdetection", "dynamicoutput",
    "output", "ruletype",     "rate_filter",         "attribute_table"};

// One logical line: physical ones that end with a backslash are joined.
struct Line {
  std::string_view text;
  std::uint32_t number = 0;
};

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
  }
  bool next(Line& line) {
    if (rest_.empty()) return false;
    line.text = take_physical();
    line.number = number_;
    if (trimmed(line.text).starts_with('#') || !is_continued(line.text)) return true;
    joined_.clear();
    for (;;) {
      const bool more = is_continued(line.text);
      line.text = more ? without_backslash(line.text) : line.text;
      joined_ += line.text;
      if (!more || rest_.empty()) break;
      line.text = take_physical();
    }
    line.text = joined_;
    return true;
  }

 private:
  static bool is_continued(std::string_view text) {
    const std::size_t last = text.find_last_not_of(" \t");
    return last != std::string_view::npos && text[last] == '\\' && (last == 0 || text[last - 1] != '\\');
  }
  static std::string_view without_backslash(std::string_view text) { return text.substr(0, text.rfind('\\')); }
  std::string_view take_physical() {
    const std::size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number_;
    return line;
  }

  std::string_view rest_;
  std::uint32_t number_ = 0;
  std::string joined_;
};

class Reader {
 public:
  explicit Reader(const ReadOptions& options) : read_commented_out_(options.commented_out) {
    set_.variables = options.variables;
    set_.classification = options.classification;
  }

  Expected<void> read_file(const std::string& path, unsigned depth) {
    auto text = read_regular_file(path, largest_file);
    if (!text) return tl::unexpected(text.error());
    return read_text(*text, path, depth);
  }

  Expected<void> read_threshold_file(const std::string& path) {
    only_alert_lines_ = true;
    return read_file(path, deepest_include);
  }

  Expected<void> read_text(std::string_view text, const std::string& name, unsigned depth) {
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
      const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n') + 1;
      return make_error(name + ":" + std::to_string(line) + ": has a NUL byte: this is no file of rules");
    }
    const auto file = static_cast<std::uint32_t>(set_.files.size());
    set_.files.push_back(name);
    Lines lines(text);
    const std::size_t before = set_.rules.size() + set_.refused.size();
    bool is_silent = !only_alert_lines_;
    for (Line line; lines.next(line);) {
      const std::string_view written = trimmed(line.text);
      is_silent = is_silent && (written.empty() || written.starts_with('#'));
      if (auto ok = read_line(line, file, depth); !ok) return ok;
    }
    if (is_silent && set_.rules.size() + set_.refused.size() == before) set_.silent_files.push_back(file);
    return {};
  }

  RuleSet finish() {
    std::erase_if(set_.rules, [](const Rule& rule) { return rule.sid == 0; });
    for (const std::string& name : set_.variables.fixed()) {
      if (!used_.contains(name)) set_.unused.push_back({name, hint_for(name)});
    }
    return std::move(set_);
  }

 private:
  Expected<void> read_line(const Line& line, std::uint32_t file, unsigned depth) {
    std::string_view text = trimmed(line.text);
    if (text.empty()) return {};
    if (text.starts_with('#')) {
      text.remove_prefix(std::min(text.find_first_not_of("# \t"), text.size()));
      if (looks_like_rule(text)) {
        ++set_.commented_out;
        if (read_commented_out_) read_rule_line(text, line.number, file, true);
      }
      return {};
    }
    std::string_view rest = text;
    std::string_view word = take_word(rest);
    if (word.ends_with(':')) word.remove_suffix(1);
    const AlertLine place{.file = file, .line = line.number};
    const auto ok = only_alert_lines_ ? read_only_alert_line(word, trimmed(rest), place)
                                      : read_directive(word, trimmed(rest), line.number, file, depth);
    if (!ok) return make_error(set_.place(file, line.number) + ": " + ok.error().message);
    if (!*ok) read_rule_line(text, line.number, file, false);
    return {};
  }

  Expected<bool> read_only_alert_line(std::string_view word, std::string_view rest, const AlertLine& place) {
    if (word == "rate_filter") return ignore(word);
    auto known = read_alert_line(word, rest, place);
    if (!known || *known) return known;
    return make_error(in_quotes(word) + " is none of suppress, event_filter and threshold, which this file is for");
  }

  // False: it is another one.
  Expected<bool> read_alert_line(std::string_view word, std::string_view rest, const AlertLine& place) {
    const auto keep = [&](auto&& one, auto& all) -> Expected<bool> {
      if (!one) return make_error(std::string(word) + ": " + one.error().message);
      one->file = place.file;
      one->line = place.line;
      all.push_back(std::move(*one));
      return true;
    };
    if (word == "suppress") use_variables(rest);
    if (word == "suppress") return keep(read_suppression(rest, set_.variables), set_.suppressions);
    if (word != "event_filter" && word != "threshold") return false;
    return keep(read_event_filter(rest), set_.event_filters);
  }

  // By which Snort configures itself.
  bool ignore(std::string_view word) {
    ++set_.ignored;
    if (std::find(set_.ignored_words.begin(), set_.ignored_words.end(), word) == set_.ignored_words.end()) {
      set_.ignored_words.emplace_back(word);
    }
    return true;
  }

  // False: it is none, so it is a rule.
  Expected<bool> read_directive(std::string_view word, std::string_view rest, std::uint32_t line, std::uint32_t file,
                                unsigned depth) {
    if (word == "include") {
      const auto ok = include(rest, file, depth);
      return ok ? Expected<bool>(true) : tl::unexpected(ok.error());
    }
    if (word == "ipvar" || word == "portvar" || word == "var") {
      const std::string_view name = take_word(rest);
      return read_variable(name, trimmed(rest), line, file);
    }
    if (word == "config") {
      if (auto known = read_config(rest); !known || *known) return known;
    }
    if (auto known = read_alert_line(word, rest, {.file = file, .line = line}); !known || *known) return known;
    return std::find(snort_words.begin(), snort_words.end(), word) != snort_words.end() && ignore(word);
  }

  Expected<bool> read_variable(std::string_view name, std::string_view text, std::uint32_t line, std::uint32_t file) {
    if (const auto ok = set_.variables.set(name, text); !ok) return tl::unexpected(ok.error());
    if (!set_.variables.fixed().contains(name)) used_.erase(std::string(name));  // what it is made of has changed
    if (*set_.variables.find(name) != text) set_.overridden.push_back({file, line, std::string(name)});
    return true;
  }

  // False: it is about something else than classes and references.
  Expected<bool> read_config(std::string_view rest) {
    const std::size_t colon = rest.find(':');
    const std::string_view what = trimmed(rest.substr(0, colon));
    if (colon == std::string_view::npos || (what != "classification" && what != "reference")) return false;
    const std::string_view line = trimmed(rest.substr(colon + 1));
    const auto ok = what == "reference" ? set_.classification.add_reference(line) : set_.classification.add_class(line);
    return ok ? Expected<bool>(true) : tl::unexpected(ok.error());
  }

  Expected<void> include(std::string_view written, std::uint32_t file, unsigned depth) {
    if (depth >= deepest_include) {
      return make_error("include: files include each other more than " + std::to_string(deepest_include) + " deep");
    }
    use_variables(written);
    auto path = with_variables(unquoted(written));
    if (!path) return tl::unexpected(path.error());
    if (path->empty()) return make_error("include: names no file");
    if (path->front() != '/') {
      const std::string& from = set_.files[file];
      path->insert(0, from.substr(0, from.rfind('/') + 1));
    }
    auto ok = read_file(*path, depth + 1);
    return ok ? ok : make_error("include: " + ok.error().message);
  }

  // $NAME replaced by the variable's text.
  Expected<std::string> with_variables(std::string_view text) const {
    std::string plain;
    while (!text.empty()) {
      const std::size_t at = std::min(text.find('$'), text.size());
      plain += text.substr(0, at);
      text.remove_prefix(at);
      if (text.empty()) break;
      const std::string_view name = text.substr(1, text.find_first_of("/.$", 1) - 1);
      const std::string* const value = set_.variables.find(name);
      if (value == nullptr) return make_error("include: the variable " + in_quotes(name) + " is not set");
      plain += *value;
      text.remove_prefix(1 + name.size());
    }
    return plain;
  }

  // A name that is usual is hardly misspelt.
  std::string hint_for(const std::string& unused) const {
    if (Variables::defaults().find(unused) != nullptr) return {};
    const std::string hint = spelling_hint(unused, {used_.begin(), used_.end()});
    return hint.starts_with("; did you mean") ? hint : std::string();
  }

  // Those that `text` names, and those that they are made of.
  void use_variables(std::string_view text) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    std::vector<std::string_view> left = {text};
    while (!left.empty()) {
      std::string_view rest = left.back();
      left.pop_back();
      for (std::size_t at = rest.find('$'); at != std::string_view::npos; at = rest.find('$')) {
        rest.remove_prefix(at + 1);
        const std::string_view name = rest.substr(0, rest.find_first_not_of(letters));
        const std::string* const value = set_.variables.find(name);
        if (value != nullptr && used_.emplace(name).second) left.push_back(*value);
      }
    }
  }

  void refuse(const Line& line, std::uint32_t file, bool commented_out, Identity identity, Misread misread) {
    set_.refused.push_back({file, line.number, identity.gid, identity.sid, commented_out, std::move(misread.reason),
                            std::move(misread.message)});
  }

  void read_rule_line(std::string_view text, std::uint32_t number, std::uint32_t file, bool commented_out) {
    Identity identity;
    if (text.size() > longest_line) {
      const std::string wrong = "it has more than 64 KiB";
      return refuse({text, number}, file, commented_out, identity, {wrong, wrong});
    }
    use_variables(text.substr(0, text.find('(')));
    auto rule = parse_rule(text, set_.variables, set_.classification, identity);
    if (!rule) return refuse({text, number}, file, commented_out, identity, std::move(rule.error()));
    rule->file = file;
    rule->line = number;
    rule->commented_out = commented_out;
    add(std::move(*rule));
  }

  // An active rule stays whatever the rev of one that is commented out.
  static std::pair<bool, std::uint32_t> rank_of(const Rule& rule) { return {!rule.commented_out, rule.rev}; }

  void add(Rule rule) {
    const auto [at, is_new] = by_sid_.try_emplace({rule.gid, rule.sid}, set_.rules.size());
    if (!is_new) {
      Rule& other = set_.rules[at->second];
      const bool wins = rank_of(rule) > rank_of(other);
      Rule& loser = wins ? other : rule;
      const Rule& winner = wins ? rule : other;
      const std::string reason = "sid: another rule has the same sid";
      refuse({{}, loser.line}, loser.file, loser.commented_out, {loser.gid, loser.sid},
             {"sid: " + set_.place(winner.file, winner.line) + " has the same sid" +
                  (winner.rev > loser.rev ? " and a higher rev" : ""),
              reason});
      if (&loser == &rule) return;
      loser.sid = 0;  // taken out at the end, as others are known by their index
      at->second = set_.rules.size();
    }
    set_.rules.push_back(std::move(rule));
  }

  RuleSet set_;
  bool read_commented_out_;
  bool only_alert_lines_ = false;
  std::set<std::string, std::less<>> used_;  // variables
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> by_sid_;
};

}  // namespace

std::string RuleSet::place(std::uint32_t file, std::uint32_t line) const {
  return files[file] + ":" + std::to_string(line);
}

Expected<RuleSet> read_rules(std::span<const std::string> paths, const ReadOptions& options) {
  Reader reader(options);
  for (const std::string& path : paths) {
    if (auto ok = reader.read_file(path, 0); !ok) return tl::unexpected(ok.error());
  }
  if (!options.threshold_file.empty()) {
    if (auto ok = reader.read_threshold_file(options.threshold_file); !ok) {
      return make_error("threshold_file: " + ok.error().message);
    }
  }
  return reader.finish();
}

Expected<RuleSet> read_rules_text(std::string_view text, const std::string& name, const ReadOptions& options) {
  Reader reader(options);
  if (auto ok = reader.read_text(text, name, 0); !ok) return tl::unexpected(ok.error());
  return reader.finish();
}

Expected<Rule> read_rule(std::string_view text, const ReadOptions& options, std::string* reason) {
  Identity identity;
  auto rule = parse_rule(text, options.variables, options.classification, identity);
  if (rule) return std::move(*rule);
  if (reason != nullptr) *reason = rule.error().reason;
  return make_error(rule.error().message);
}

}  // namespace sluice::match
