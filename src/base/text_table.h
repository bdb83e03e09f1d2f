// Numbers and tables for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// Three digits and a factor: 950, "1.23 k", "45.6 M", "7.00 G".
std::string short_number(double value);
// Three digits and a unit: "0 us", "12.3 us", "1.50 ms".
std::string short_duration(std::uint64_t ns);

// Columns as wide as they need to be, two spaces apart. A column is set to the right when its heading begins with '>',
// which is not printed.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  // With a line break after each row; bold headings for a terminal.
  std::string str(bool color = false) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sluice
