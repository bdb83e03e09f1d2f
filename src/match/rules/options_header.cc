// Options that check fields of the packet's headers, and lengths.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "base/quote.h"
#include "match/rules/draft.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool negated = false;
};

struct Symbol {
  std::string_view text;
  int side;       // -1: below the number, 0: the number, 1: above
  bool included;  // the number itself
  bool negated;
};
constexpr auto symbols = std::to_array<Symbol>({{">=", 1, true, false},
                                                {"<=", -1, true, false},
                                                {"!=", 0, true, true},
                                                {">", 1, false, false},
                                                {"<", -1, false, false},
                                                {"!", 0, true, true},
                                                {"=", 0, true, false}});

std::optional<std::int64_t> number_within(std::string_view text, std::int64_t max) {
  const auto number = number_of(trimmed(text));
  return number && *number >= 0 && *number <= max ? number : std::nullopt;
}

// [!]A<>B or [!]A-B: what is between, without A and B.
std::optional<Range> read_between(std::string_view text, std::int64_t max) {
  const bool negated = text.starts_with('!');
  if (negated) text.remove_prefix(1);
  std::size_t at = text.find("<>");
  const std::size_t width = at == std::string_view::npos ? 1 : 2;
  if (width == 1) at = text.find('-', 1);
  if (at == std::string_view::npos) return std::nullopt;
  const auto low = number_within(text.substr(0, at), max);
  const auto high = number_within(text.substr(at + width), max);
  if (!low || !high) return std::nullopt;
  return Range{*low + 1, *high - 1, negated};
}

// A number with a symbol or none before it, or a range. The answer is what is wrong.
std::string read_range(std::string_view text, std::int64_t max, Range& range) {
  text = trimmed(text);
  if (const auto between = read_between(text, max)) {
    range = *between;
    return range.first <= range.last ? "" : in_quotes(text) + " has no number between its ends, which do not count";
  }
  Symbol symbol{"", 0, true, false};
  for (const Symbol& one : symbols) {
    if (text.starts_with(one.text)) {
      symbol = one;
      break;
    }
  }
  const auto number = number_within(text.substr(symbol.text.size()), max);
  const std::string limits = " up to " + std::to_string(max);
  if (!number) {
    return in_quotes(text) + " is no number" + limits + ", with < <= > >= ! or nothing before it, nor a range A<>B";
  }
  const std::int64_t step = symbol.included ? 0 : 1;
  range.first = symbol.side < 0 ? 0 : *number + (symbol.side > 0 ? step : 0);
  range.last = symbol.side > 0 ? max : *number - (symbol.side < 0 ? step : 0);
  range.negated = symbol.negated;
  return range.first > range.last ? in_quotes(text) + " leaves no number" : "";
}

std::string read_number(Draft& draft, std::string_view value, HeaderField field, std::int64_t max) {
  Range range;
  std::string wrong = read_range(unquoted(value), max, range);
  if (wrong.empty()) {
    draft.rule.numbers.push_back(
        {field, static_cast<std::uint32_t>(range.first), static_cast<std::uint32_t>(range.last), range.negated});
  }
  return wrong;
}

std::string read_size(Draft& draft, std::string_view value, Buffer buffer, bool by_urilen) {
  Range range;
  std::string wrong = read_range(value, std::numeric_limits<std::uint32_t>::max(), range);
  if (wrong.empty()) {
    draft.rule.checks.emplace_back(BufferSize{buffer, static_cast<std::uint32_t>(range.first),
                                              static_cast<std::uint32_t>(range.last), range.negated, by_urilen});
  }
  return wrong;
}

constexpr std::int64_t u8 = 255;
constexpr std::int64_t u16 = 65535;
constexpr std::int64_t u32 = std::numeric_limits<std::uint32_t>::max();

struct Letter {
  char letter;
  std::uint8_t bits;
};
constexpr auto tcp_letters = std::to_array<Letter>({{'F', 0x01},
                                                    {'S', 0x02},
                                                    {'R', 0x04},
                                                    {'P', 0x08},
                                                    {'A', 0x10},
                                                    {'U', 0x20},
                                                    {'E', 0x40},
                                                    {'2', 0x40},
                                                    {'C', 0x80},
                                                    {'1', 0x80},
                                                    {'0', 0}});
constexpr auto fragment_letters = std::to_array<Letter>({{'M', 1}, {'D', 2}, {'R', 4}});

// Letters, and where `mode` is given one of + * ! among them.
template <typename Letters>
std::string read_bits(std::string_view text, const Letters& letters, std::uint8_t& bits, BitMode* mode) {
  bool has_letter = false;
  for (char c : text) {
    if (c == ' ') continue;
    if (mode != nullptr && (c == '+' || c == '*' || c == '!')) {
      if (*mode != BitMode::exactly) return in_quotes(text) + " has two of + * !";
      *mode = c == '+' ? BitMode::all : c == '*' ? BitMode::any : BitMode::not_all;
      continue;
    }
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    const auto at = std::find_if(letters.begin(), letters.end(), [c](const Letter& one) { return one.letter == c; });
    if (at == letters.end()) return in_quotes(text) + " has a letter that is none of its bits";
    bits = static_cast<std::uint8_t>(bits | at->bits);
    has_letter = true;
  }
  return has_letter ? "" : in_quotes(text) + " names no bit";
}

struct Named {
  std::string_view name;
  std::uint8_t number;
};
constexpr auto ip_options = std::to_array<Named>({{"eol", 0},
                                                  {"nop", 1},
                                                  {"rr", 7},
                                                  {"ts", 68},
                                                  {"sec", 130},
                                                  {"lsrr", 131},
                                                  {"esec", 133},
                                                  {"satid", 136},
                                                  {"ssrr", 137},
                                                  {"any", any_ip_option}});
constexpr auto ip_protocols = std::to_array<Named>({{"icmp", 1},
                                                    {"igmp", 2},
                                                    {"ipip", 4},
                                                    {"tcp", 6},
                                                    {"udp", 17},
                                                    {"ipv6", 41},
                                                    {"gre", 47},
                                                    {"esp", 50},
                                                    {"ah", 51},
                                                    {"icmpv6", 58},
                                                    {"ospf", 89},
                                                    {"pim", 103},
                                                    {"sctp", 132}});

template <typename Names>
const Named* find_named(const Names& names, std::string_view name) {
  const auto at = std::find_if(names.begin(), names.end(), [&](const Named& one) { return one.name == name; });
  return at == names.end() ? nullptr : &*at;
}

}  // namespace

std::string read_dsize(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::payload_size, u16);
}
std::string read_ttl(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::ttl, u8);
}
std::string read_id(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::ip_id, u16);
}
std::string read_tos(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::tos, u8);
}
std::string read_fragoffset(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::fragment_offset, 8191);
}
std::string read_itype(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::icmp_type, u8);
}
std::string read_icode(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::icmp_code, u8);
}
std::string read_icmp_id(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::icmp_id, u16);
}
std::string read_icmp_seq(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::icmp_sequence, u16);
}
std::string read_seq(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::tcp_sequence, u32);
}
std::string read_ack(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::tcp_acknowledgement, u32);
}
std::string read_window(Draft& draft, std::string_view value) {
  return read_number(draft, value, HeaderField::tcp_window, u16);
}

std::string read_ip_proto(Draft& draft, std::string_view value) {
  const bool negated = value.starts_with('!');
  const Named* const named = find_named(ip_protocols, lower_case(trimmed(value.substr(negated ? 1 : 0))));
  if (named == nullptr) return read_number(draft, value, HeaderField::ip_proto, u8);
  draft.rule.numbers.push_back({HeaderField::ip_proto, named->number, named->number, negated});
  return {};
}

std::string read_urilen(Draft& draft, std::string_view value) {
  const auto words = split(value, ',');
  if (words.size() > 2 || (words.size() == 2 && words[1] != "norm" && words[1] != "raw")) {
    return in_quotes(value) + " is not NUMBER, NUMBER,norm or NUMBER,raw";
  }
  return read_size(draft, words[0], words.back() == "raw" ? Buffer::http_raw_uri : Buffer::http_uri, true);
}

std::string read_bsize(Draft& draft, std::string_view value) {
  if (draft.buffer == Buffer::payload) return "no sticky buffer is before it to measure";
  return read_size(draft, value, draft.buffer, false);
}

std::string read_flags(Draft& draft, std::string_view value) {
  BitCheck check;
  const auto parts = split(value, ',');
  if (parts.size() > 2) return in_quotes(value) + " is not FLAGS or FLAGS,IGNORED";
  std::string wrong = read_bits(parts[0], tcp_letters, check.bits, &check.mode);
  if (wrong.empty() && parts.size() == 2) wrong = read_bits(parts[1], tcp_letters, check.ignored, nullptr);
  if (wrong.empty()) draft.rule.bits.push_back(check);
  return wrong;
}

std::string read_fragbits(Draft& draft, std::string_view value) {
  BitCheck check;
  check.field = BitCheck::Field::fragment_bits;
  std::string wrong = read_bits(value, fragment_letters, check.bits, &check.mode);
  if (wrong.empty()) draft.rule.bits.push_back(check);
  return wrong;
}

std::string read_ipopts(Draft& draft, std::string_view value) {
  const Named* const option = find_named(ip_options, lower_case(value));
  if (option == nullptr) {
    return in_quotes(value) + " is none of eol, nop, rr, ts, sec, esec, lsrr, ssrr, satid and any";
  }
  draft.rule.ip_options.push_back(option->number);
  return {};
}

std::string read_sameip(Draft& draft, std::string_view) {
  draft.rule.same_ip = true;
  return {};
}

}  // namespace sluice::match
