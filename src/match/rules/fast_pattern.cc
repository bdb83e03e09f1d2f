#include "match/rules/fast_pattern.h"

#include <bitset>
#include <tuple>

namespace sluice::match {
namespace {

std::string_view pattern_of(const Content& content) {
  const std::string_view bytes = content.bytes;
  return content.fast_length == 0 ? bytes : bytes.substr(content.fast_offset, content.fast_length);
}

std::size_t distinct_bytes(std::string_view bytes) {
  std::bitset<256> seen;
  for (const char c : bytes) seen.set(static_cast<unsigned char>(c));
  return seen.count();
}

}  // namespace

std::optional<BestPattern> best_pattern(const Rule& rule, bool (*in)(Buffer buffer)) {
  std::optional<BestPattern> best;
  std::tuple<bool, std::size_t, std::size_t> rank;
  for (std::size_t i = 0; i < rule.checks.size(); ++i) {
    const Content* const content = std::get_if<Content>(&rule.checks[i]);
    if (content == nullptr || content->negated || content->buffer == Buffer::base64_data) continue;
    if (in != nullptr && !in(content->buffer)) continue;
    const std::string_view bytes = pattern_of(*content);
    const std::tuple mine(content->fast_pattern != FastPattern::no, bytes.size(), distinct_bytes(bytes));
    if (!best || mine > rank) {
      best = BestPattern{i, content->buffer, bytes, content->nocase};
      rank = mine;
    }
  }
  return best;
}

}  // namespace sluice::match
