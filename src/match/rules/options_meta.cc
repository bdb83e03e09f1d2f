// Options that say what a rule is called and how much it matters.
#include <limits>
#include <string>

#include "base/quote.h"
#include "match/rules/draft.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

std::string read_id_number(std::string_view value, std::uint32_t min, std::uint32_t& number) {
  constexpr std::int64_t max = std::numeric_limits<std::uint32_t>::max();
  const auto read = number_of(unquoted(value));
  if (!read || *read < min || *read > max) return no_number(value, min, max);
  number = static_cast<std::uint32_t>(*read);
  return {};
}

// What stands behind a quote without a backslash is another option, before which a semicolon is missing.
std::string bare_quote(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return "there is a quote in the text: a ';' is missing, or the quote is to be written as \\\"";
    }
  }
  return {};
}

}  // namespace

std::string read_msg(Draft& draft, std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') {
    return in_quotes(value) + " is no text in double quotes";
  }
  if (auto bare = bare_quote(unquoted(value)); !bare.empty()) return bare;
  draft.rule.msg = unescaped(unquoted(value));
  return {};
}

std::string read_sid(Draft& draft, std::string_view value) {
  return read_id_number(value, 1, draft.rule.sid);
}

std::string read_gid(Draft& draft, std::string_view value) {
  return read_id_number(value, 0, draft.rule.gid);
}

std::string read_rev(Draft& draft, std::string_view value) {
  return read_id_number(value, 0, draft.rule.rev);
}

std::string read_classtype(Draft& draft, std::string_view value) {
  if (auto bare = bare_quote(value); !bare.empty()) return bare;
  draft.rule.classtype = lower_case(value);
  const ClassType* const known = draft.classification.find(draft.rule.classtype);
  if (known != nullptr && !draft.has_priority) draft.rule.priority = known->priority;
  return {};
}

std::string read_priority(Draft& draft, std::string_view value) {
  const auto read = number_of(value);
  if (!read || *read < 1 || *read > 255) return no_number(value, 1, 255);
  draft.rule.priority = static_cast<std::uint8_t>(*read);
  draft.has_priority = true;
  return {};
}

std::string read_reference(Draft& draft, std::string_view value) {
  if (auto bare = bare_quote(value); !bare.empty()) return bare;
  const std::size_t comma = value.find(',');
  if (comma == std::string_view::npos) return in_quotes(value) + " is not SYSTEM,ID";
  draft.rule.references.push_back(
      {std::string(trimmed(value.substr(0, comma))), unescaped(trimmed(value.substr(comma + 1)))});
  return {};
}

std::string read_metadata(Draft& draft, std::string_view value) {
  if (auto bare = bare_quote(value); !bare.empty()) return bare;
  for (const std::string_view one : split(value, ',')) {
    if (!one.empty()) draft.rule.metadata.emplace_back(one);
  }
  return {};
}

// Which side is the attack's target: for whoever reads the alert.
std::string read_target(Draft& draft, std::string_view value) {
  if (value != "src_ip" && value != "dest_ip") return in_quotes(value) + " is neither src_ip nor dest_ip";
  draft.rule.target = value == "src_ip" ? Rule::Target::source : Rule::Target::destination;
  return {};
}

std::string read_noalert(Draft& draft, std::string_view) {
  draft.rule.noalert = true;
  return {};
}

}  // namespace sluice::match
