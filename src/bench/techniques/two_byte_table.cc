#include "bench/techniques/two_byte_table.h"

#include <algorithm>

namespace sluice::match {
namespace {

// Of each byte the first one of its class.
using Leaders = std::array<std::uint8_t, 256>;

// Parts bytes that were of one class and have different entries in `row`.
void part(Leaders& leader, const std::uint32_t* row) {
  bool parts = false;
  for (unsigned byte = 0; byte < 256; ++byte) parts |= row[byte] != row[leader[byte]];
  if (!parts) return;  // of most states
  const Leaders before = leader;
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned first = before[byte];
    while (before[first] != before[byte] || row[first] != row[byte]) ++first;
    leader[byte] = static_cast<std::uint8_t>(first);
  }
}

}  // namespace

TwoByteTable::TwoByteTable(const Dfa& dfa, std::size_t most_bytes) {
  const std::uint32_t* const next = dfa.next().data();
  Leaders leader{};
  for (std::size_t state = 0; state < dfa.states(); ++state) part(leader, next + state * 256);
  std::vector<std::uint8_t> leaders;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (leader[byte] == byte) leaders.push_back(static_cast<std::uint8_t>(byte));
    const auto at = std::ranges::lower_bound(leaders, leader[byte]);
    class_of_[byte] = static_cast<std::uint8_t>(at - leaders.begin());
  }
  classes_ = static_cast<std::uint32_t>(leaders.size());

  const std::size_t per_state = sizeof(std::uint32_t) * classes_ * classes_;
  hot_states_ = static_cast<std::uint32_t>(std::min(dfa.states(), most_bytes / per_state));
  pairs_.reserve(std::size_t{hot_states_} * classes_ * classes_);
  for (std::size_t state = 0; state < hot_states_; ++state) {
    for (const std::uint8_t first : leaders) {
      const std::uint32_t middle = next[state * 256 + first];
      const std::uint32_t* const row = next + (middle & ~Dfa::accepts) * std::size_t{256};
      for (const std::uint8_t second : leaders) {
        const std::uint32_t last = row[second];
        pairs_.push_back((middle & ends_first) | (last & ~Dfa::accepts) |
                         ((last & Dfa::accepts) != 0 ? ends_second : 0));
      }
    }
  }
}

}  // namespace sluice::match
