// Rule files as they are: the rules that load, and for each that does not, why.
//
// A rule loads only when every option of it is one that the engine honours (keywords.h) with a value that can be read;
// otherwise it is refused with the option's name, never loaded without it. Which rules are active: those that are not
// commented out.
//
// Files: comments, lines continued with a backslash, LF or CRLF, bytes above 127 as they are, a byte-order mark.
// Besides rules a line may be `include FILE` (below the including file's folder unless absolute; $VAR in it is
// replaced), `ipvar`, `portvar` or `var NAME TEXT`, `config classification: ...`, `config reference: ...`, and lines
// that keep alerts back (alert_lines.h). Lines by which Snort configures itself (preprocessor, config, output,
// rate_filter, ...) are counted in `ignored`. A variable that the options have fixed (Variables::fix) stays; a line
// that would change it is in `overridden`; one that nothing names is in `unused`. A comment is never continued.
//
// Two rules with the same gid and sid: an active one stays before one that is commented out, then the one with the
// higher rev, of equal ones the first. The other is refused with the place of the one that stays.
//
// Errors are for what cannot be read at all: no such file, a folder or pipe, more than 256 MiB, a file with NUL bytes.
// Also for includes deeper than 8, a variable's line that says nothing, a line that keeps alerts back and cannot be
// read. A line of more than 64 KiB is a refused rule. Cost: about 15 us per rule, mostly compiling its regular
// expressions. Thread-safety: any thread, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "match/rules/alert_lines.h"
#include "match/rules/classification.h"
#include "match/rules/rule.h"
#include "match/rules/variables.h"

namespace sluice::match {

struct Refusal {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t gid = 1;
  std::uint32_t sid = 0;  // 0: not known
  bool commented_out = false;
  // The same text for the same cause, to count by: "asn1: ASN.1 is not decoded".
  std::string reason;
  // What is wrong here: "depth: 3 is smaller than the content's 5 bytes".
  std::string message;
};

// A line that sets a variable in vain.
struct OverriddenVariable {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::string name;
};

// A variable that the options have fixed and no line uses, neither by its name nor by another variable's. The lines are
// rules that are read, be they refused or not, suppress and include.
struct UnusedVariable {
  std::string name;
  std::string hint;  // "; did you mean \"HOME_NET\"?", where one that is used is close
};

struct RuleSet {
  std::vector<std::string> files;
  std::vector<std::uint32_t> silent_files;  // nothing stands in them but comments
  std::vector<Rule> rules;                  // in the files' order
  std::vector<Refusal> refused;
  std::size_t commented_out = 0;           // rules behind a #, whether they were read or not
  std::size_t ignored = 0;                 // lines by which Snort configures itself
  std::vector<std::string> ignored_words;  // their first words, each once
  std::vector<OverriddenVariable> overridden;
  std::vector<UnusedVariable> unused;
  std::vector<Suppression> suppressions;  // in the files' order
  std::vector<EventFilter> event_filters;
  Variables variables;
  Classification classification;

  // "FILE:LINE"
  std::string place(std::uint32_t file, std::uint32_t line) const;
};

struct ReadOptions {
  Variables variables = Variables::defaults();
  Classification classification = Classification::defaults();
  bool commented_out = false;  // read these, too
  // A file of lines that keep alerts back, and of nothing else; empty: none. It is read behind the others, whose
  // variables it may name.
  std::string threshold_file;
};

Expected<RuleSet> read_rules(std::span<const std::string> paths, const ReadOptions& options = {});
// `name` stands for the file in messages, and an include is below the folder in it.
Expected<RuleSet> read_rules_text(std::string_view text, const std::string& name, const ReadOptions& options = {});

// One rule, without its place. An Error's message is that of a Refusal, `reason` (if given) gets its reason.
Expected<Rule> read_rule(std::string_view text, const ReadOptions& options = {}, std::string* reason = nullptr);

}  // namespace sluice::match
