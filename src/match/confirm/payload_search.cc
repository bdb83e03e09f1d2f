#include "match/confirm/payload_search.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <x86intrin.h>

#include <algorithm>
#include <bit>

#include "match/confirm/base64.h"
#include "match/confirm/digits.h"

namespace sluice::match {
namespace {

// Sums of what the payload's bytes may have made; none: it is no place in any buffer.
std::optional<std::int64_t> sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

// What a number is multiplied to, and rounded up.
std::uint64_t rounded(std::uint64_t value, std::uint64_t multiple) {
  return multiple <= 1 ? value : (value + multiple - 1) / multiple * multiple;
}

// `bitmask` as ByteNumber's.
std::uint64_t masked(std::uint64_t value, std::uint32_t bitmask) {
  return bitmask == 0 ? value : (value & bitmask) >> std::countr_zero(bitmask);
}

int base_of(ByteNumber::Base base) {
  switch (base) {
    case ByteNumber::Base::dec:
      return 10;
    case ByteNumber::Base::hex:
      return 16;
    case ByteNumber::Base::oct:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

bool PayloadSearch::has_time(std::size_t bytes) {
  if (deadline == PayloadMatcher::unlimited) return true;
  if (work >= bytes_a_clock) {
    work = 0;
    if (__rdtsc() >= deadline) steps_left = 0;
  }
  work += bytes;
  return steps_left != 0;
}

std::size_t PayloadSearch::find(std::string_view bytes, std::size_t from, std::size_t to, const Needle& what) {
  for (; from < to && to - from >= what.size(); from += bytes_a_clock) {
    const std::size_t end = std::min(to, from + bytes_a_clock + what.size() - 1);
    if (!has_time(end - from)) return Needle::npos;
    if (const std::size_t at = what.find(bytes, from, end); at != Needle::npos) return at;
  }
  return Needle::npos;
}

std::optional<std::string_view> PayloadSearch::bytes_of(Buffer buffer) const {
  if (buffer != Buffer::base64_data) return buffers[buffer];
  return decoded ? std::optional<std::string_view>(scratch.decoded_) : std::nullopt;
}

bool PayloadSearch::from(std::size_t i) {
  if (i == matcher.steps_.size()) return true;
  if (steps_left == 0) return false;
  --steps_left;
  if (!has_time(bytes_a_step)) return false;
  const Step& step = matcher.steps_[i];
  const auto bytes = bytes_of(step.buffer);
  return bytes && std::visit([&](const auto& one) { return check(i, step, *bytes, one); }, step.check);
}

bool PayloadSearch::after(std::size_t i, Buffer buffer, std::size_t end) {
  const std::size_t before = cursor_of(buffer);
  cursor_of(buffer) = end;
  const bool holds = from(i + 1);
  cursor_of(buffer) = before;
  return holds;
}

// As Suricata reckons it, in 32 bits: a `within` that ends before the buffer has no end, and a number of the payload's
// that is negative is a place beyond the buffer, or no end.
PayloadSearch::Range PayloadSearch::range_of(const Placement& place, std::size_t cursor, std::size_t size) const {
  const auto start = static_cast<std::uint32_t>(value_of(place.start));
  const auto length = static_cast<std::uint32_t>(value_of(place.length));
  auto first = start, last = static_cast<std::uint32_t>(size);
  if (place.relative) {
    const auto before = static_cast<std::uint32_t>(cursor);
    const auto end = static_cast<std::int64_t>(static_cast<std::int32_t>(before + start + length));
    first = static_cast<std::int32_t>(start) < 0 && 0 - start > before ? 0 : before + start;
    if (place.has_end && end < static_cast<std::int64_t>(size)) last = static_cast<std::uint32_t>(end);
  } else if (place.has_end) {
    last = length + start;
  }
  return {std::min<std::size_t>(first, size), std::min<std::size_t>(last, size)};
}

bool PayloadSearch::check(std::size_t i, const Step& step, std::string_view bytes, const Content& content) {
  const Range range = range_of(content.place, cursor_of(step.buffer), bytes.size());
  std::size_t first = range.first;
  const std::size_t last = range.last;
  const Needle& what = step.needle;
  if (content.place.at_end && bytes.size() >= what.size()) first = std::max(first, bytes.size() - what.size());
  const auto found = [&](std::size_t from) -> std::optional<std::size_t> {
    const std::size_t at = find(bytes, from, last, what);
    if (at >= last || (content.place.at_end && at + what.size() != bytes.size())) return std::nullopt;
    return at;
  };
  if (content.negated) return !found(first) && steps_left != 0 && from(i + 1);
  for (auto at = found(first); at; at = found(*at + 1)) {
    if (after(i, step.buffer, *at + what.size())) return true;
    const bool is_decided = step.places == Places::first || (step.places == Places::first_decides && !unknown);
    if (is_decided || steps_left == 0) return false;
  }
  return false;
}

// Tried again, it goes on in the same subject, behind the begin of what was found: ^, \b and lookbehind see what is
// before.
bool PayloadSearch::check(std::size_t i, const Step& step, std::string_view bytes, const Pcre& pcre) {
  const std::size_t begin = pcre.relative ? std::min(cursor_of(step.buffer), bytes.size()) : 0;
  const std::string_view subject = bytes.substr(begin);
  const bool retried = step.places != Places::first && (pcre.options & PCRE2_ANCHORED) == 0;
  pcre2_match_context* const context = pcre.larger_limit ? scratch.larger_limit_ : scratch.limited_;
  for (std::size_t start = 0; start <= subject.size();) {
    if (!has_time(bytes_a_clock)) return false;
    const int result = pcre2_match(step.code.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), start,
                                   0, scratch.found_, context);
    if (result < 0 && result != PCRE2_ERROR_NOMATCH) {  // a limit, mostly: whether it is there is not known
      unknown = true;
      return false;
    }
    const bool found = result >= 0;
    if (pcre.negated) return !found && from(i + 1);
    if (!found) return false;
    const PCRE2_SIZE* const place = pcre2_get_ovector_pointer(scratch.found_);
    const std::size_t at = place[0], end = place[1];  // what follows may match with found_ as well
    if (after(i, step.buffer, begin + end)) return true;
    if (!retried || steps_left == 0) return false;
    start = std::max(start, at) + 1;  // \K in a lookbehind moves a match's begin back
  }
  return false;
}

std::optional<PayloadSearch::Number> PayloadSearch::number_of(const ByteNumber& number, std::string_view bytes,
                                                              bool may_be_empty) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t base = number.relative ? static_cast<std::int64_t>(cursor_of(number.buffer)) : 0;
  const std::int64_t offset = value_of(number.offset);
  const auto begin = sum(base, number.offset.variable < 0 ? offset : static_cast<std::int32_t>(offset));
  const std::int64_t count = value_of(number.count);
  if (!begin || *begin < 0 || count < 0 || *begin > size || count > size - *begin) return std::nullopt;
  if (number.relative && *begin == size && !may_be_empty) return std::nullopt;
  const auto at = static_cast<std::size_t>(*begin);
  auto end = at + static_cast<std::size_t>(count);
  const std::string_view digits = bytes.substr(at, static_cast<std::size_t>(count));
  std::uint64_t value = 0;
  if (number.base == ByteNumber::Base::binary) {
    if (count > 8) return std::nullopt;
    for (std::size_t k = 0; k < digits.size(); ++k) {
      const auto byte = static_cast<std::uint8_t>(digits[number.little_endian ? digits.size() - 1 - k : k]);
      value = value << 8 | byte;
    }
  } else {
    const auto read = number_of_digits(count == 0 ? bytes.substr(at) : digits, base_of(number.base));
    if (!read) return std::nullopt;
    value = read->value;
    end = at + read->size;
  }
  return Number{value, end};
}

bool PayloadSearch::check(std::size_t i, const Step& /*step*/, std::string_view bytes, const ByteTest& test) {
  const auto number = number_of(test.number, bytes);
  if (!number) return false;
  const std::uint64_t value = masked(number->value, test.number.bitmask);
  const auto against = static_cast<std::uint64_t>(value_of(test.value));
  bool holds = false;
  switch (test.comparison) {
    case ByteTest::Comparison::less:
      holds = value < against;
      break;
    case ByteTest::Comparison::less_equal:
      holds = value <= against;
      break;
    case ByteTest::Comparison::equal:
      holds = value == against;
      break;
    case ByteTest::Comparison::greater_equal:
      holds = value >= against;
      break;
    case ByteTest::Comparison::greater:
      holds = value > against;
      break;
    case ByteTest::Comparison::bit_and:
      holds = (value & against) != 0;
      break;
    case ByteTest::Comparison::bit_xor:
      holds = (value ^ against) != 0;
      break;
  }
  return holds != test.negated && from(i + 1);
}

bool PayloadSearch::check(std::size_t i, const Step& step, std::string_view bytes, const ByteJump& jump) {
  const auto number = number_of(jump.number, bytes, true);
  if (!number) return false;
  // Digits may have a sign: the number wraps, as does what it is multiplied to.
  const auto value = static_cast<std::int64_t>(
      rounded(masked(number->value, jump.number.bitmask) * jump.multiplier, jump.align ? 4 : 1));
  if (value > std::int64_t{UINT32_MAX} || value < -std::int64_t{UINT32_MAX}) return false;
  const std::int64_t base = jump.from == ByteJump::From::beginning ? 0
                            : jump.from == ByteJump::From::end     ? static_cast<std::int64_t>(bytes.size())
                                                                   : static_cast<std::int64_t>(number->end);
  const auto to = sum(base + value, value_of(jump.post_offset));
  if (!to || *to > static_cast<std::int64_t>(bytes.size())) return false;
  return after(i, step.buffer, static_cast<std::size_t>(std::max<std::int64_t>(*to, 0)));
}

bool PayloadSearch::check(std::size_t i, const Step& step, std::string_view bytes, const ByteExtract& extract) {
  const auto number = number_of(extract.number, bytes);
  if (!number) return false;
  scratch.variables_[static_cast<std::size_t>(extract.variable)] =
      rounded(masked(number->value, extract.number.bitmask) * extract.multiplier, extract.align);
  return after(i, step.buffer, number->end);
}

bool PayloadSearch::check(std::size_t i, const Step& step, std::string_view bytes, const ByteMath& math) {
  const auto number = number_of(math.number, bytes);
  if (!number) return false;
  const auto right = static_cast<std::uint64_t>(value_of(math.right));
  std::uint64_t value = number->value;
  switch (math.operation) {
    case ByteMath::Operator::add:
      value += right;
      break;
    case ByteMath::Operator::subtract:
      value -= right;
      break;
    case ByteMath::Operator::multiply:
      value *= right;
      break;
    case ByteMath::Operator::divide:
      if (right == 0) return false;
      value /= right;
      break;
    case ByteMath::Operator::shift_left:
      value = right > 63 ? 0 : value << right;
      break;
    case ByteMath::Operator::shift_right:
      value = right > 63 ? 0 : value >> right;
      break;
  }
  scratch.variables_[static_cast<std::size_t>(math.variable)] = masked(value, math.number.bitmask);
  return after(i, step.buffer, number->end);
}

bool PayloadSearch::check(std::size_t i, const Step& step, std::string_view bytes, const IsDataAt& data) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t count = value_of(data.count);
  const auto end = sum(data.relative ? static_cast<std::int64_t>(cursor_of(step.buffer)) : 0, count);
  const bool is_far = !end || wraps(data.count);
  const bool holds = !is_far && (data.relative ? *end <= size : count < size);
  return holds != data.negated && from(i + 1);
}

bool PayloadSearch::check(std::size_t i, const Step& step, std::string_view bytes, const Base64Decode& decode) {
  const std::size_t base = decode.relative ? cursor_of(step.buffer) : 0;
  if (base > bytes.size() || decode.offset > bytes.size() - base) return false;
  std::string_view coded = bytes.substr(base + decode.offset);
  constexpr std::size_t most = PayloadMatcher::most_base64;
  coded = coded.substr(0, decode.bytes == 0 ? most : std::min<std::size_t>(decode.bytes, most));
  base64_decode(coded, scratch.decoded_);
  if (scratch.decoded_.empty()) return false;
  decoded = true;
  const bool holds = from(i + 1);
  decoded = false;
  return holds;
}

bool PayloadSearch::check(std::size_t i, const Step& /*step*/, std::string_view bytes, const BufferSize& size) {
  const bool holds = bytes.size() >= size.first && bytes.size() <= size.last;
  return holds != size.negated && from(i + 1);
}

}  // namespace sluice::match
