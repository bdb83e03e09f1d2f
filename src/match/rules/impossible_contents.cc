#include "match/rules/impossible_contents.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

#include "base/quote.h"
#include "match/rules/buffer_bytes.h"
#include "match/rules/check_facts.h"
#include "match/rules/rule_scope.h"

namespace sluice::match {
namespace {

// At least this, whatever a variable of the rule is.
std::int64_t least_of(std::int64_t base, const Operand& operand) {
  return operand.variable < 0 ? std::max<std::int64_t>(0, base + operand.value) : 0;
}

// The least that buffers have to hold for the checks to hold, one after another (confirm/payload_search.cc).
class Needs {
 public:
  explicit Needs(const Rule& rule) {
    for (const Check& check : rule.checks) {
      Need& need = needs_[buffer_of(check)];
      std::visit([&](const auto& one) { take(need, one); }, check);
    }
  }
  std::int64_t of(Buffer buffer) const {
    const auto at = needs_.find(buffer);
    return at == needs_.end() ? 0 : at->second.bytes;
  }

 private:
  struct Need {
    std::int64_t bytes = 0;
    std::int64_t previous = 0;  // the end of the previous match, at least
  };

  static void reach(Need& need, std::int64_t end) { need.bytes = std::max(need.bytes, end); }
  static void match(Need& need, std::int64_t end) {
    reach(need, end);
    need.previous = end;
  }
  static std::int64_t end_of(const Need& need, const ByteNumber& number) {
    return least_of(number.relative ? need.previous : 0, number.offset) + least_of(0, number.count);
  }

  static void take(Need& need, const Content& content) {
    if (content.negated) return;
    const std::int64_t begin = least_of(content.place.relative ? need.previous : 0, content.place.start);
    match(need, begin + static_cast<std::int64_t>(content.bytes.size()));
  }
  static void take(Need& need, const Pcre& pcre) {
    if (!pcre.negated) match(need, pcre.relative ? need.previous : 0);
  }
  static void take(Need& need, const ByteTest& test) { reach(need, end_of(need, test.number)); }
  static void take(Need& need, const ByteExtract& extract) { match(need, end_of(need, extract.number)); }
  static void take(Need& need, const ByteMath& math) { match(need, end_of(need, math.number)); }
  static void take(Need& need, const ByteJump& jump) {
    const std::int64_t end = end_of(need, jump.number);
    reach(need, end);
    match(need, least_of(jump.from == ByteJump::From::beginning ? 0 : end, jump.post_offset));
  }
  static void take(Need& need, const IsDataAt& data) {
    if (!data.negated) reach(need, least_of(data.relative ? need.previous : 1, data.count));
  }
  static void take(Need& /*need*/, const Base64Decode& /*decode*/) {}
  static void take(Need& /*need*/, const BufferSize& /*size*/) {}

  std::map<Buffer, Need> needs_;
};

Impossible too_small(std::string_view option, std::uint32_t most, Buffer buffer, std::int64_t need) {
  const std::string what = "what the rule looks for in " +
                           std::string(buffer == Buffer::payload ? "the payload" : name_of(buffer)) + " needs ";
  return {std::string(option) + ": " + std::to_string(most) + " bytes at most, and " + what + std::to_string(need),
          std::string(option) + ": " + what + "more"};
}

// More of a packet's payload than dsize leaves it.
Impossible beyond_dsize(const Rule& rule, const Needs& needs) {
  if (!is_about_packets(rule)) return {};
  const std::int64_t need = needs.of(Buffer::payload);
  for (const NumberCheck& check : rule.numbers) {
    if (check.field == HeaderField::payload_size && !check.negated && check.last < need) {
      return too_small("dsize", check.last, Buffer::payload, need);
    }
  }
  return {};
}

// More than bsize or urilen leaves a buffer. What normalising makes of a URI is no longer than the URI.
Impossible beyond_size(const Rule& rule, const Needs& needs) {
  for (const Check& check : rule.checks) {
    const auto* const size = std::get_if<BufferSize>(&check);
    if (size == nullptr || size->negated) continue;
    for (const Buffer buffer : {size->buffer, size->buffer == Buffer::http_raw_uri ? Buffer::http_uri : size->buffer}) {
      if (needs.of(buffer) > size->last) {
        return too_small(size->by_urilen ? "urilen" : "bsize", size->last, buffer, needs.of(buffer));
      }
    }
  }
  return {};
}

std::string_view name_of_byte(char c) {
  switch (c) {
    case ' ':
      return "a blank";
    case '\t':
      return "a tab";
    case '\n':
    case '\r':
      return "a line end";
    case '\0':
      return "a zero byte";
    default:
      return "white space";
  }
}

// Where a content lies in its buffer, if there is one place alone.
struct Ends {
  bool first;
  bool last;
};
Ends ends_of(const Content& content, const Rule& rule) {
  const auto size = static_cast<std::int64_t>(content.bytes.size());
  const bool fills = std::any_of(rule.checks.begin(), rule.checks.end(), [&](const Check& check) {
    const auto* const whole = std::get_if<BufferSize>(&check);
    return whole != nullptr && whole->buffer == content.buffer && !whole->negated && whole->last == size;
  });
  const Placement& place = content.place;
  const bool at_begin =
      !place.relative && place.has_end && place.start == Operand{} && place.length == Operand{size, -1};
  return {fills || at_begin, fills || place.at_end};
}

Impossible never_there(const Rule& rule) {
  for (const Check& check : rule.checks) {
    const auto* const content = std::get_if<Content>(&check);
    if (content == nullptr || content->negated) continue;
    const BytesNever never = bytes_never_in(content->buffer);
    const auto says = [&](std::string_view verb, char c) {
      const std::string end = " " + std::string(verb) + " " + std::string(name_of_byte(c)) + ", and " +
                              std::string(name_of(content->buffer)) + " never does";
      return Impossible{"content: " + in_quotes(content->bytes) + end, "content: it" + end};
    };
    if (const auto at = content->bytes.find_first_of(never.anywhere); at != std::string::npos) {
      return says("has", content->bytes[at]);
    }
    const Ends ends = ends_of(*content, rule);
    if (ends.first && never.first.find(content->bytes.front()) != std::string_view::npos) {
      return says("begins with", content->bytes.front());
    }
    if (ends.last && never.last.find(content->bytes.back()) != std::string_view::npos) {
      return says("ends with", content->bytes.back());
    }
  }
  return {};
}

}  // namespace

Impossible impossible_content(const Rule& rule) {
  const Needs needs(rule);
  Impossible wrong = beyond_dsize(rule, needs);
  if (wrong.message.empty()) wrong = beyond_size(rule, needs);
  if (wrong.message.empty()) wrong = never_there(rule);
  return wrong;
}

}  // namespace sluice::match
