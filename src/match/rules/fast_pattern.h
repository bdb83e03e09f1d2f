// The content that stands for a rule in the multi-pattern matcher.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "match/rules/rule.h"

namespace sluice::match {

// `bytes` lies in the rule, and is a part of the content only with fast_pattern:OFFSET,LENGTH. A rule can match only
// where its pattern is in `buffer` (in any case of its letters when nocase), so the rest of a rule whose pattern is
// found is still to be checked, this content included.
struct BestPattern {
  std::size_t check = 0;  // index into Rule::checks
  Buffer buffer = Buffer::payload;
  std::string_view bytes;
  bool nocase = false;
};

// The content with fast_pattern, else the longest one (as Suricata chooses among one buffer's contents); of equally
// long ones that with more distinct bytes, then the first. Never a negated one, nor one in a buffer that is made from
// another (base64_data). Nothing: the rule has none, and is checked on every packet that its header admits.
// `in`: only of those in such buffers.
std::optional<BestPattern> best_pattern(const Rule& rule, bool (*in)(Buffer buffer) = nullptr);

}  // namespace sluice::match
