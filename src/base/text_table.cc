#include "base/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

namespace sluice {
namespace {

std::string with_decimals(double value, int decimals) {
  std::array<char, 400> text;  // the largest double has 309 digits
  return {text.data(), static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.*f", decimals, value))};
}

std::string three_digits(double value) {
  // Rounding must not make four digits of 999.6 or 9.996.
  return with_decimals(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

}  // namespace

std::string short_number(double value) {
  constexpr const char* factors[] = {"", " k", " M", " G", " T", " P"};
  if (value < 999.5) return with_decimals(value, 0);
  std::size_t i = 0;
  while (value >= 999.5 && i + 1 < std::size(factors)) {
    value /= 1000;
    ++i;
  }
  return three_digits(value) + factors[i];
}

std::string short_duration(std::uint64_t ns) {
  if (ns == 0) return "0 us";
  const double us = static_cast<double>(ns) / 1e3;
  if (us < 999.5) return three_digits(us) + " us";
  return us < 999.5e3 ? three_digits(us / 1e3) + " ms" : three_digits(us / 1e6) + " s";
}

std::string Table::str(bool color) const {
  const std::vector<std::string>& headings = rows_[0];
  std::vector<bool> right(headings.size());
  std::vector<std::size_t> widths(headings.size());
  for (std::size_t c = 0; c < headings.size(); ++c) {
    right[c] = headings[c].starts_with('>');
    for (const auto& row : rows_)
      widths[c] = std::max(widths[c], row[c].size() - (&row == &rows_[0] && right[c] ? 1 : 0));
  }
  std::string out;
  for (const auto& row : rows_) {
    const bool heading = &row == &rows_[0];
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string cell = heading && right[c] ? row[c].substr(1) : row[c];
      const std::string space(widths[c] - cell.size(), ' ');
      line += (c == 0 ? "" : "  ") + (right[c] ? space + cell : cell + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += heading && color ? "\x1b[1m" + line + "\x1b[0m\n" : line + "\n";
  }
  return out;
}

}  // namespace sluice
