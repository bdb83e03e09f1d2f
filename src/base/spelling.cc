#include "base/spelling.h"

#include <algorithm>

namespace sluice {

unsigned edit_distance(std::string_view a, std::string_view b) {
  std::vector<unsigned> two_above;
  std::vector<unsigned> above(b.size() + 1);
  std::vector<unsigned> row(b.size() + 1);
  for (unsigned j = 0; j <= b.size(); ++j) row[j] = j;
  for (unsigned i = 1; i <= a.size(); ++i) {
    two_above = above;
    above = row;
    row[0] = i;
    for (unsigned j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string spelling_hint(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t longest_word = 64;
  std::string list;
  const std::string* closest = nullptr;
  unsigned least = word.size() < 6 ? 2 : 3;
  for (const std::string& candidate : known) {
    list.append(list.empty() ? "" : ", ").append(candidate);
    if (word.size() > longest_word) continue;
    const unsigned distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      closest = &candidate;
    }
  }
  if (closest != nullptr) return "; did you mean \"" + *closest + "\"?";
  return list.empty() ? "" : "; known are " + list;
}

}  // namespace sluice
