// Options that read numbers from the payload, or ask how much of it there is.
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

constexpr std::int64_t farthest = 1 << 20;
constexpr std::int64_t largest_value = std::numeric_limits<std::uint32_t>::max();
constexpr const char* no_dce = "dce takes the byte order from DCE/RPC, which is not parsed";

// "multiplier 4" is a word and its argument.
struct Word {
  std::string_view name;
  std::string_view argument;
  explicit Word(std::string_view text) {
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    name = text.substr(0, end);
    argument = trimmed(text.substr(end));
  }
};

std::string read_u32(const Word& word, std::int64_t min, std::uint32_t& number) {
  const auto read = number_of(word.argument);
  if (!read || *read < min || *read > largest_value) {
    return std::string(word.name) + ": " + no_number(word.argument, min, largest_value);
  }
  number = static_cast<std::uint32_t>(*read);
  return {};
}

bool read_base(std::string_view name, ByteNumber& number) {
  using Base = ByteNumber::Base;
  if (name == "string") {
    if (number.base == Base::binary) number.base = Base::automatic;
  } else if (name == "hex") {
    number.base = Base::hex;
  } else if (name == "dec") {
    number.base = Base::dec;
  } else if (name == "oct") {
    number.base = Base::oct;
  } else {
    return false;
  }
  return true;
}

// What byte_test, byte_jump, byte_extract and byte_math have in common. Nothing: it is none of these words; else what
// is wrong with it.
std::optional<std::string> read_common(const Word& word, ByteNumber& number) {
  if (word.name == "relative") {
    number.relative = true;
  } else if (word.name == "little" || word.name == "big") {
    number.little_endian = word.name == "little";
  } else if (word.name == "dce") {
    return no_dce;
  } else if (word.name == "bitmask") {
    return read_u32(word, 1, number.bitmask);
  } else if (!read_base(word.name, number)) {
    return std::nullopt;
  }
  return "";
}

std::string unknown(const Word& word) {
  return in_quotes(word.name) + " is none of its words";
}

std::string read_place(const Draft& draft, std::string_view count, std::string_view offset, ByteNumber& number) {
  std::string wrong = draft.read_operand(count, 0, 23, number.count);
  return wrong.empty() ? draft.read_operand(offset, -farthest, farthest, number.offset) : wrong;
}

// A number before the buffer's beginning, or of more bytes than there are in a number.
std::string check_number(const ByteNumber& number) {
  if (number.base == ByteNumber::Base::binary && number.count.variable < 0 && number.count.value > 8) {
    return std::to_string(number.count.value) + " bytes are more than the 8 of a binary number";
  }
  return number.relative || number.offset.value >= 0 ? "" : "a negative offset needs `relative`";
}

std::string read_comparison(std::string_view text, ByteTest& test) {
  using Comparison = ByteTest::Comparison;
  struct Name {
    std::string_view text;
    Comparison comparison;
  };
  constexpr std::array<Name, 8> names{{{"<", Comparison::less},
                                       {"<=", Comparison::less_equal},
                                       {"=", Comparison::equal},
                                       {"", Comparison::equal},
                                       {">=", Comparison::greater_equal},
                                       {">", Comparison::greater},
                                       {"&", Comparison::bit_and},
                                       {"^", Comparison::bit_xor}}};
  if (text.starts_with('!')) {
    test.negated = true;
    text = trimmed(text.substr(1));
  } else if (text.empty()) {
    return "it has no comparison";
  }
  const auto* const at = std::find_if(names.begin(), names.end(), [&](const Name& name) { return name.text == text; });
  if (at == names.end()) return in_quotes(text) + " is no comparison: < <= = >= > & ^, each with ! before it or not";
  test.comparison = at->comparison;
  return {};
}

std::optional<std::string> read_jump_word(const Draft& draft, const Word& word, ByteJump& jump) {
  if (word.name == "align") {
    jump.align = true;
  } else if (word.name == "multiplier") {
    return read_u32(word, 1, jump.multiplier);
  } else if (word.name == "from_beginning") {
    jump.from = ByteJump::From::beginning;
  } else if (word.name == "from_end") {
    jump.from = ByteJump::From::end;
  } else if (word.name == "post_offset") {
    return draft.read_operand(word.argument, -farthest, farthest, jump.post_offset);
  } else {
    return std::nullopt;
  }
  return "";
}

std::optional<std::string> read_extract_word(const Word& word, ByteExtract& extract) {
  if (word.name == "multiplier") return read_u32(word, 1, extract.multiplier);
  if (word.name != "align") return std::nullopt;
  if (word.argument != "2" && word.argument != "4") return "align takes 2 or 4";
  extract.align = static_cast<std::uint8_t>(word.argument[0] - '0');
  return "";
}

struct MathNames {
  unsigned seen = 0;
  std::string_view result;
};

// The five words that byte_math must have, each once.
std::optional<std::string> read_math_word(const Draft& draft, const Word& word, ByteMath& math, MathNames& names) {
  constexpr std::array<std::string_view, 5> required{"bytes", "offset", "oper", "rvalue", "result"};
  const auto* const at = std::find(required.begin(), required.end(), word.name);
  if (at == required.end()) {
    return word.name == "endian" || word.name == "string" ? read_common(Word(word.argument), math.number)
                                                          : read_common(word, math.number);
  }
  const unsigned bit = 1U << (at - required.begin());
  if ((names.seen & bit) != 0) return std::string(word.name) + " is there twice";
  names.seen |= bit;
  if (word.name == "bytes") return draft.read_operand(word.argument, 1, 10, math.number.count);
  if (word.name == "offset") return draft.read_operand(word.argument, -farthest, farthest, math.number.offset);
  if (word.name == "rvalue") return draft.read_operand(word.argument, 0, largest_value, math.right);
  if (word.name == "result") {
    names.result = word.argument;
    return "";
  }
  constexpr std::array<std::string_view, 6> operators{"+", "-", "*", "/", "<<", ">>"};
  const auto* const oper = std::find(operators.begin(), operators.end(), word.argument);
  if (oper == operators.end()) return in_quotes(word.argument) + " is no operator: + - * / << >>";
  math.operation = static_cast<ByteMath::Operator>(oper - operators.begin());
  return "";
}

}  // namespace

std::string read_byte_test(Draft& draft, std::string_view value) {
  const auto words = split(value, ',');
  if (words.size() < 4) return in_quotes(value) + " is not BYTES,COMPARISON,VALUE,OFFSET";
  ByteTest test;
  std::string wrong = read_place(draft, words[0], words[3], test.number);
  if (wrong.empty()) wrong = read_comparison(words[1], test);
  if (wrong.empty()) wrong = draft.read_operand(words[2], -largest_value, largest_value, test.value);
  for (std::size_t i = 4; i < words.size() && wrong.empty(); ++i) {
    const Word word(words[i]);
    wrong = word.name == "string" && !word.argument.empty() ? unknown(Word(word.argument))
                                                            : read_common(word, test.number).value_or(unknown(word));
  }
  if (wrong.empty()) wrong = check_number(test.number);
  test.number.buffer = draft.buffer_of(test.number.relative);
  if (wrong.empty()) draft.rule.checks.emplace_back(test);
  return wrong;
}

std::string read_byte_jump(Draft& draft, std::string_view value) {
  const auto words = split(value, ',');
  if (words.size() < 2) return in_quotes(value) + " is not BYTES,OFFSET";
  ByteJump jump;
  // byte_jump:0 has no number at all: it jumps by its post_offset.
  const bool reads_nothing = words[0] == "0";
  std::string wrong = reads_nothing ? draft.read_operand(words[1], -farthest, farthest, jump.number.offset)
                                    : read_place(draft, words[0], words[1], jump.number);
  for (std::size_t i = 2; i < words.size() && wrong.empty(); ++i) {
    const Word word(words[i]);
    auto answer = read_jump_word(draft, word, jump);
    if (!answer) answer = read_common(word, jump.number);
    wrong = answer.value_or(unknown(word));
  }
  if (wrong.empty()) wrong = check_number(jump.number);
  jump.number.buffer = draft.buffer_of(jump.number.relative);
  if (wrong.empty()) draft.rule.checks.emplace_back(jump);
  return wrong;
}

std::string read_byte_extract(Draft& draft, std::string_view value) {
  const auto words = split(value, ',');
  if (words.size() < 3) return in_quotes(value) + " is not BYTES,OFFSET,NAME";
  ByteExtract extract;
  std::string wrong = read_place(draft, words[0], words[1], extract.number);
  for (std::size_t i = 3; i < words.size() && wrong.empty(); ++i) {
    const Word word(words[i]);
    auto answer = read_extract_word(word, extract);
    if (!answer) answer = read_common(word, extract.number);
    wrong = answer.value_or(unknown(word));
  }
  if (wrong.empty()) wrong = check_number(extract.number);
  extract.number.buffer = draft.buffer_of(extract.number.relative);
  if (wrong.empty()) wrong = draft.declare(words[2], extract.variable);
  if (wrong.empty()) draft.rule.checks.emplace_back(extract);
  return wrong;
}

std::string read_byte_math(Draft& draft, std::string_view value) {
  ByteMath math;
  MathNames names;
  for (const std::string_view text : split(value, ',')) {
    const Word word(text);
    std::string wrong = read_math_word(draft, word, math, names).value_or(unknown(word));
    if (!wrong.empty()) return wrong;
  }
  if (names.seen != 0x1f) return "it needs bytes, offset, oper, rvalue and result";
  if (math.operation == ByteMath::Operator::divide && math.right == Operand{0, -1}) return "it divides by 0";
  std::string wrong = check_number(math.number);
  math.number.buffer = draft.buffer_of(math.number.relative);
  if (wrong.empty()) wrong = draft.declare(names.result, math.variable);
  if (wrong.empty()) draft.rule.checks.emplace_back(math);
  return wrong;
}

std::string read_isdataat(Draft& draft, std::string_view value) {
  IsDataAt check;
  if (value.starts_with('!')) {
    check.negated = true;
    value = trimmed(value.substr(1));
  }
  const auto words = split(value, ',');
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "relative") {
      check.relative = true;
    } else if (words[i] != "rawbytes") {
      return unknown(Word(words[i]));
    }
  }
  check.buffer = draft.buffer_of(check.relative);
  std::string wrong = draft.read_operand(words[0], 0, 65535, check.count);
  if (wrong.empty()) draft.rule.checks.emplace_back(check);
  return wrong;
}

std::string read_base64_decode(Draft& draft, std::string_view value) {
  Base64Decode decode;
  decode.buffer = draft.buffer_of(true);
  for (const std::string_view text : value.empty() ? std::vector<std::string_view>{} : split(value, ',')) {
    const Word word(text);
    std::string wrong;
    if (word.name == "bytes") {
      wrong = read_u32(word, 1, decode.bytes);
    } else if (word.name == "offset") {
      wrong = read_u32(word, 0, decode.offset);
    } else if (word.name == "relative") {
      decode.relative = true;
    } else {
      wrong = unknown(word);
    }
    if (!wrong.empty()) return wrong;
  }
  draft.has_base64_decode = true;
  draft.rule.checks.emplace_back(decode);
  return {};
}

}  // namespace sluice::match
