// content and what modifies it, and pcre.
#include <string>

#include "base/quote.h"
#include "match/rules/draft.h"
#include "match/rules/pcre.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

constexpr std::size_t longest_content = 65535;
constexpr std::int64_t farthest = 1 << 20;  // as Suricata limits offsets and depths
constexpr const char* no_content = "no content is before it to apply to";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// What is between two bars.
std::string read_hex(std::string_view text, std::string& bytes) {
  int high = -1;
  for (const char c : text) {
    if (c == ' ' || c == '\t') continue;
    const int digit = hex_digit(c);
    if (digit < 0) return in_quotes(text) + " between the bars is no list of hexadecimal bytes";
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  return high < 0 ? "" : in_quotes(text) + " between the bars has an odd number of digits";
}

// What is between the quotes.
std::string read_bytes(std::string_view text, std::string& bytes) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '|') {
      const std::size_t end = text.find('|', i + 1);
      if (end == std::string_view::npos) return in_quotes(text) + " has a bar that is not closed";
      std::string wrong = read_hex(text.substr(i + 1, end - i - 1), bytes);
      if (!wrong.empty()) return wrong;
      i = end;
    } else if (text[i] == '\\') {
      if (++i == text.size() || std::string_view("\\\";:").find(text[i]) == std::string_view::npos) {
        return in_quotes(text) + " has a backslash before something else than ; : \" and \\";
      }
      bytes += text[i];
    } else if (text[i] == '"') {
      return in_quotes(text) + " has a quote without a backslash before it";
    } else {
      bytes += text[i];
    }
  }
  if (bytes.empty()) return "it has no bytes";
  return bytes.size() > longest_content ? "it has more than 65535 bytes" : "";
}

// Offset, depth, distance or within of the last content, which excludes those of `excluded`.
std::string place(Draft& draft, std::string_view value, Draft::Given what, unsigned excluded, std::int64_t min) {
  Content* const content = draft.content();
  if (content == nullptr) return no_content;
  if ((draft.given & static_cast<unsigned>(what)) != 0) return "this content has one already";
  if ((draft.given & excluded) != 0) {
    return "one content can have offset and depth, or distance and within, or startswith, not two of these";
  }
  const bool is_length = what == Draft::depth || what == Draft::within;
  Operand operand;
  std::string wrong = draft.read_operand(value, min, farthest, operand);
  if (!wrong.empty()) return wrong;
  const auto size = static_cast<std::int64_t>(content->bytes.size());
  if (is_length && operand.variable < 0 && operand.value < size) {
    return std::to_string(operand.value) + " is smaller than the content's " + std::to_string(size) +
           " bytes: it could never match";
  }
  draft.given |= static_cast<unsigned>(what);
  (is_length ? content->place.length : content->place.start) = operand;
  content->place.has_end = content->place.has_end || is_length;
  content->place.relative = what == Draft::distance || what == Draft::within;
  return {};
}

}  // namespace

std::string read_content(Draft& draft, std::string_view value) {
  Content content;
  content.buffer = draft.buffer;
  if (value.starts_with('!')) {
    content.negated = true;
    value = trimmed(value.substr(1));
  }
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') {
    return in_quotes(value) + " is no text in double quotes";
  }
  std::string wrong = read_bytes(unquoted(value), content.bytes);
  if (wrong.empty()) draft.add(std::move(content));
  return wrong;
}

std::string read_uricontent(Draft& draft, std::string_view value) {
  std::string wrong = read_content(draft, value);
  if (wrong.empty()) {
    draft.content()->buffer = Buffer::http_uri;
    draft.given |= Draft::moved;
  }
  return wrong;
}

std::string read_nocase(Draft& draft, std::string_view) {
  if (draft.content() == nullptr) return no_content;
  draft.content()->nocase = true;
  return {};
}

std::string read_rawbytes(Draft& draft, std::string_view) {
  return draft.content() == nullptr ? no_content : "";
}

std::string read_offset(Draft& draft, std::string_view value) {
  return place(draft, value, Draft::offset, Draft::distance | Draft::within | Draft::starts, 0);
}

std::string read_depth(Draft& draft, std::string_view value) {
  return place(draft, value, Draft::depth, Draft::distance | Draft::within | Draft::starts, 1);
}

std::string read_distance(Draft& draft, std::string_view value) {
  return place(draft, value, Draft::distance, Draft::offset | Draft::depth | Draft::starts, -farthest);
}

std::string read_within(Draft& draft, std::string_view value) {
  return place(draft, value, Draft::within, Draft::offset | Draft::depth | Draft::starts, 1);
}

std::string read_startswith(Draft& draft, std::string_view) {
  Content* const content = draft.content();
  if (content == nullptr) return no_content;
  if ((draft.given & (Draft::offset | Draft::depth | Draft::distance | Draft::within)) != 0) {
    return "it excludes offset, depth, distance and within";
  }
  draft.given |= Draft::starts;
  content->place.has_end = true;
  content->place.length.value = static_cast<std::int64_t>(content->bytes.size());
  return {};
}

std::string read_endswith(Draft& draft, std::string_view) {
  if (draft.content() == nullptr) return no_content;
  draft.content()->place.at_end = true;
  return {};
}

std::string read_fast_pattern(Draft& draft, std::string_view value) {
  Content* const content = draft.content();
  if (content == nullptr) return no_content;
  if (draft.has_fast_pattern) return "the rule has two, and one content only can be it";
  draft.has_fast_pattern = true;
  content->fast_pattern = value == "only" ? FastPattern::only : FastPattern::yes;
  if (value.empty() || value == "only") return {};
  const auto numbers = split(value, ',');
  const auto offset = number_of(numbers[0]);
  const auto length = number_of(numbers.size() == 2 ? numbers[1] : "");
  const auto size = static_cast<std::int64_t>(content->bytes.size());
  if (!offset || !length || *offset < 0 || *length < 1 || *offset > size || *length > size - *offset) {
    return in_quotes(value) + " is neither `only` nor OFFSET,LENGTH within the content's " + std::to_string(size) +
           " bytes";
  }
  content->fast_offset = static_cast<std::uint16_t>(*offset);
  content->fast_length = static_cast<std::uint16_t>(*length);
  return {};
}

std::string read_pcre_option(Draft& draft, std::string_view value) {
  auto pcre = parse_pcre(value, draft.buffer);
  if (!pcre) return pcre.error().message;
  draft.rule.checks.emplace_back(std::move(*pcre));
  return {};
}

}  // namespace sluice::match
