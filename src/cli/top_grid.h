// The tables of `sluice top`, with what each cell is sorted by and which columns a narrow screen can do without.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/top_rates.h"
#include "control/snapshot.h"

namespace sluice::cli {

struct Column {
  std::string heading;
  bool right = false;  // a number
  unsigned rank = 0;   // columns of the highest rank go first where there is no space; 0: never
};

struct Cell {
  std::string text;
  double value = 0;    // of a number
  bool wrong = false;  // shown in red where there are colours
};

struct Grid {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string when_empty;  // instead of rows
};

Grid port_grid(const control::Snapshot& now, const Rates& rates);
Grid lane_grid(const control::Snapshot& now, const Rates& rates);
Grid device_grid(const control::Snapshot& now, const Rates& rates);
Grid drop_grid(const control::Snapshot& now, const Rates& rates);
// What functions count and hold themselves, without those that are 0: no rows at all where there are none.
Grid metric_grid(const control::Snapshot& now);

struct GridStyle {
  bool color = false;  // bold headings, red cells
  unsigned width = 0;  // no line is longer; 0: as long as they are
  int sorted_by = -1;  // a column, the largest number first, its heading marked; -1: as the rows come
  bool reverse = false;
};
// A line for the headings and one for each row, without line breaks. Numbers are never cut: where there is no space,
// whole columns are left out (named in `left_out`), and the last text is cut.
std::vector<std::string> grid_lines(const Grid& grid, const GridStyle& style,
                                    std::vector<std::string>* left_out = nullptr);

}  // namespace sluice::cli
