// What matching is by definition, slowly: for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "match/automaton/key_set.h"

namespace sluice::match::test {

inline std::string folded(std::string text) {
  for (char& c : text) c = static_cast<char>(fold(static_cast<std::uint8_t>(c)));
  return text;
}

// The keys of `klass` that the payload holds.
inline std::set<std::uint32_t> keys_in(const KeySet& keys, const std::string& payload, unsigned klass) {
  const std::string text = folded(payload);
  std::set<std::uint32_t> found;
  for (std::uint32_t k = 0; k < keys.keys().size(); ++k) {
    const Key& key = keys.keys()[k];
    const std::string bytes(key.bytes.begin(), key.bytes.begin() + key.length);
    if ((key.classes >> klass & 1) != 0 && text.find(bytes) != std::string::npos) found.insert(k);
  }
  return found;
}

}  // namespace sluice::match::test
