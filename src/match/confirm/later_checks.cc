#include "match/confirm/later_checks.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string_view>
#include <variant>

#include "match/rules/check_facts.h"

namespace sluice::match {
namespace {

// What a later check makes of the place of an earlier one.
enum class Effect : std::uint8_t {
  none,          // it holds or not, whatever the place
  ends,          // likewise, and those behind it are relative to it
  narrows,       // it holds from the first place if from any
  narrows_ends,  // likewise, and those behind it are relative to it
  depends
};

Effect effect_of(const Content& content) {
  if (!content.place.relative) return content.negated ? Effect::none : Effect::ends;
  return content.negated || content.place.has_end ? Effect::depends : Effect::narrows_ends;
}

Effect effect_of(const Pcre& pcre) {
  if (!pcre.relative) return pcre.negated ? Effect::none : Effect::ends;
  return pcre.negated || !looks_ahead_only(pcre) ? Effect::depends : Effect::narrows_ends;
}

Effect effect_of(const IsDataAt& data) {
  if (!data.relative) return Effect::none;
  return data.negated ? Effect::depends : Effect::narrows;
}

Effect effect_of(const ByteTest& test) {
  return test.number.relative ? Effect::depends : Effect::none;
}

Effect effect_of(const Base64Decode& decode) {
  return decode.relative ? Effect::depends : Effect::none;
}

Effect effect_of(const BufferSize& /*size*/) {
  return Effect::none;
}

// byte_jump, byte_extract, byte_math.
template <typename Moving>
Effect effect_of(const Moving& moving) {
  return moving.number.relative ? Effect::depends : Effect::ends;
}

}  // namespace

Places places_of(std::span<const Check* const> checks, std::size_t i) {
  const bool is_content = std::holds_alternative<Content>(*checks[i]);
  if (!is_content && !std::holds_alternative<Pcre>(*checks[i])) return Places::first;
  const Places narrowed = is_content ? Places::first_decides : Places::each;
  Places places = Places::first;
  for (std::size_t later = i + 1; later < checks.size(); ++later) {
    if (buffer_of(*checks[later]) != buffer_of(*checks[i])) continue;
    switch (std::visit([](const auto& one) { return effect_of(one); }, *checks[later])) {
      case Effect::none:
        break;
      case Effect::ends:
        return places;
      case Effect::narrows:
        places = narrowed;
        break;
      case Effect::narrows_ends:
        return narrowed;
      case Effect::depends:
        return Places::each;
    }
  }
  return places;
}

bool looks_ahead_only(const Pcre& pcre) {
  if ((pcre.options & PCRE2_ANCHORED) != 0) return false;
  const std::string_view pattern = pcre.pattern;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const std::string_view rest = pattern.substr(at);
    if (pattern[at] == '\\') {
      if (rest.size() < 2 || std::string_view("AbBGKQ").find(rest[1]) != std::string_view::npos) return false;
      ++at;
    } else if (in_class) {
      in_class = pattern[at] != ']';  // a ']' that does not end it, as of [:alpha:], leaves more to be looked at
    } else if (pattern[at] == '[') {
      in_class = true;
    } else if (pattern[at] == '^' || rest.starts_with("(?<") || rest.starts_with("(*")) {
      return false;
    }
  }
  return true;
}

}  // namespace sluice::match
