#include "match/rules/draft.h"

#include <optional>

#include "base/quote.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

constexpr std::size_t most_variables = 1000;

// Of a check that has, or moves, the end of "the previous match".
std::optional<Buffer> cursor_buffer(const Check& check) {
  if (const auto* one = std::get_if<Content>(&check)) return one->buffer;
  if (const auto* one = std::get_if<Pcre>(&check)) return one->buffer;
  if (const auto* one = std::get_if<ByteTest>(&check)) return one->number.buffer;
  if (const auto* one = std::get_if<ByteJump>(&check)) return one->number.buffer;
  if (const auto* one = std::get_if<ByteExtract>(&check)) return one->number.buffer;
  if (const auto* one = std::get_if<ByteMath>(&check)) return one->number.buffer;
  if (const auto* one = std::get_if<IsDataAt>(&check)) return one->buffer;
  return std::nullopt;
}

}  // namespace

std::string Draft::read_operand(std::string_view text, std::int64_t min, std::int64_t max, Operand& operand) const {
  if (const auto number = number_of(text)) {
    operand = {*number, -1};
    return *number < min || *number > max ? no_number(text, min, max) : "";
  }
  // The last one of that name: a name may be made again for what follows.
  for (std::size_t i = rule.variables.size(); i-- > 0;) {
    if (rule.variables[i] == text) {
      operand = {0, static_cast<std::int16_t>(i)};
      return {};
    }
  }
  return no_number(text, min, max) + ", nor a variable that an earlier byte_extract or byte_math makes";
}

Buffer Draft::buffer_of(bool relative) const {
  if (buffer != Buffer::payload || !relative) return buffer;
  for (std::size_t i = rule.checks.size(); i-- > 0;) {
    if (const auto before = cursor_buffer(rule.checks[i])) return *before;
  }
  return buffer;
}

std::string Draft::declare(std::string_view name, std::int16_t& variable) {
  const bool begins_well = !name.empty() && !(name[0] >= '0' && name[0] <= '9');
  if (!begins_well || name.find_first_of(" \t,;:!+-\"") != std::string_view::npos) {
    return in_quotes(name) + " is no name for a variable";
  }
  if (rule.variables.size() >= most_variables) return "the rule has more than 1000 variables";
  variable = static_cast<std::int16_t>(rule.variables.size());
  rule.variables.emplace_back(name);
  return {};
}

}  // namespace sluice::match
