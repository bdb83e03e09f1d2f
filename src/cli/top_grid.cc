#include "cli/top_grid.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>

#include "cli/report.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

using control::LaneSnapshot;
using control::PortSnapshot;
using control::Snapshot;

constexpr const char* bold = "\x1b[1m";
constexpr const char* red = "\x1b[31m";
constexpr const char* plain = "\x1b[0m";
constexpr std::size_t gap = 2, least_text = 8;

Cell count(std::uint64_t value, bool wrong = false) {
  return {std::to_string(value), static_cast<double>(value), wrong && value != 0};
}
Cell number(double value) {
  return {short_number(value), value};
}
Cell text(std::string value, bool wrong = false) {
  return {std::move(value), 0, wrong};
}

// The columns that stand, of these widths, in `width`.
std::vector<std::size_t> fitting(const Grid& grid, const std::vector<std::size_t>& widths, unsigned width) {
  std::vector<std::size_t> columns(grid.columns.size());
  std::iota(columns.begin(), columns.end(), 0);
  const auto total = [&] {
    std::size_t sum = gap * (columns.size() - 1);
    for (const std::size_t column : columns) sum += widths[column];
    // The last text may be cut.
    const bool can_be_cut = !grid.columns[columns.back()].right && widths[columns.back()] > least_text;
    return sum - (can_be_cut ? widths[columns.back()] - least_text : 0);
  };
  while (width != 0 && total() > width) {
    const auto least = std::max_element(columns.begin(), columns.end(), [&](std::size_t a, std::size_t b) {
      return grid.columns[a].rank < grid.columns[b].rank;
    });
    if (grid.columns[*least].rank == 0) break;
    columns.erase(least);
  }
  return columns;
}

std::string heading_of(const Grid& grid, std::size_t column, const GridStyle& style) {
  return grid.columns[column].heading + (static_cast<int>(column) == style.sorted_by ? "*" : "");
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return right ? space + text : text + space;
}

class Line {
 public:
  explicit Line(const GridStyle& style) : style_(style) {}
  void add(const std::string& text, std::size_t width, bool right, bool wrong) {
    std::string cell = (length_ == 0 ? "" : std::string(gap, ' ')) + padded(text, width, right);
    if (style_.width != 0 && length_ + cell.size() > style_.width) {
      cell.resize(style_.width - std::min<std::size_t>(length_, style_.width));
      if (!right && cell.size() > 3 && text.size() > cell.size() - gap) cell.replace(cell.size() - 3, 3, "...");
    }
    length_ += cell.size();
    line_ += wrong && style_.color ? red + cell + plain : cell;
  }
  std::string take() {
    line_.erase(line_.find_last_not_of(' ') + 1);
    return std::move(line_);
  }

 private:
  const GridStyle style_;
  std::string line_;
  std::size_t length_ = 0;  // without colours
};

}  // namespace

Grid port_grid(const Snapshot& now, const Rates& rates) {
  Grid grid{{{"PORT"},
             {"LINK"},
             {"RX/s", true},
             {"RX bit/s", true, 2},
             {"TX/s", true},
             {"TX bit/s", true, 2},
             {"MISSED", true},
             {"ERRORS", true, 1}},
            {},
            "no ports"};
  for (std::size_t i = 0; i < now.ports.size(); ++i) {
    const PortSnapshot& port = now.ports[i];
    const auto rate = [&](auto field) { return rates.per_second(&Snapshot::ports, i, field); };
    grid.rows.push_back({text(port.name), text(link_text(port), !port.link_up), number(rate(&PortSnapshot::rx_frames)),
                         number(8 * rate(&PortSnapshot::rx_bytes)), number(rate(&PortSnapshot::tx_frames)),
                         number(8 * rate(&PortSnapshot::tx_bytes)), count(port.missed, true),
                         count(port.rx_errors + port.tx_errors, true)});
  }
  return grid;
}

Grid lane_grid(const Snapshot& now, const Rates& rates) {
  Grid grid{{{"LANE", true},
             {"PORT"},
             {"QUEUE", true, 6},
             {"CORE", true, 1},
             {"RX/s", true},
             {"TX/s", true},
             {"BATCHES/s", true, 5},
             {"FRAMES/BATCH", true, 4},
             {"BUSY", true},
             {"NS/FRAME", true, 2},
             {"IN FLIGHT", true, 3},
             {"STALLS", true, 1},
             {"MISSED", true},
             {"COMPUTES ON", false, 7}},
            {},
            "no lanes"};
  for (std::size_t i = 0; i < now.lanes.size(); ++i) {
    const LaneSnapshot& lane = now.lanes[i];
    const auto rate = [&](auto field) { return rates.per_second(&Snapshot::lanes, i, field); };
    const double batches = rate(&LaneSnapshot::batches);
    const double busy = rate(&LaneSnapshot::collecting_ns) + rate(&LaneSnapshot::forwarding_ns);  // ns each second
    const double frames = rate(&LaneSnapshot::rx_frames);
    grid.rows.push_back(
        {count(lane.index), text(lane.port), count(lane.queue),
         lane.core < 0 ? text("-") : count(static_cast<std::uint64_t>(lane.core)), number(frames),
         number(rate(&LaneSnapshot::tx_frames)), number(batches), batches > 0 ? number(frames / batches) : text("-"),
         Cell{fmt::format("{:.0f} %", busy / 1e7), busy}, frames > 0 ? number(busy / frames) : text("-"),
         count(lane.in_flight), count(lane.receive_stalls, true), count(lane.misses, true),
         text(lane.chosen.empty() ? lane.device : lane.device + ": " + lane.chosen)});
  }
  return grid;
}

Grid device_grid(const Snapshot& now, const Rates& rates) {
  using control::DeviceSnapshot;
  using control::HelperSnapshot;
  Grid grid{{{"DEVICE"}, {"STATE"}, {"BATCHES/s", true}, {"FRAMES/s", true}, {"RESCUED", true, 1}, {"IS"}}, {}, ""};
  for (std::size_t i = 0; i < now.devices.size(); ++i) {
    const DeviceSnapshot& device = now.devices[i];
    const auto rate = [&](auto field) { return number(rates.per_second(&Snapshot::devices, i, field)); };
    grid.rows.push_back({text(device.name), text(device.state, device.state != "up"), rate(&DeviceSnapshot::batches),
                         rate(&DeviceSnapshot::frames), count(device.rescued_frames),
                         text(device.why.empty() ? device.text : control::device_text(device))});
  }
  for (std::size_t i = 0; i < now.helpers.size(); ++i) {
    const auto rate = [&](auto field) { return rates.per_second(&Snapshot::helpers, i, field); };
    grid.rows.push_back({text(fmt::format("core {}", now.helpers[i].core)), text("up"),
                         number(rate(&HelperSnapshot::spans)), number(rate(&HelperSnapshot::jobs)), count(0),
                         text(fmt::format("computes parts of the lanes' batches, {:.0f} % busy",
                                          rate(&HelperSnapshot::busy_ns) / 1e7))});
  }
  return grid;
}

Grid drop_grid(const Snapshot& now, const Rates& rates) {
  std::uint64_t missed = 0;
  for (const PortSnapshot& port : now.ports) missed += port.missed;
  Grid grid{
      {{"DROPPED"}, {"/s", true}, {"FRAMES", true}, {"BECAUSE"}},
      {},
      missed == 0 ? "nothing dropped" : fmt::format("nothing dropped; {} missed by ports", fmt::group_digits(missed))};
  for (const control::DropSnapshot& drop : now.drops) {
    if (drop.frames == 0) continue;
    grid.rows.push_back({text(drop.reason), number(rates.drops_per_second(drop)), count(drop.frames), text(drop.text)});
  }
  return grid;
}

Grid metric_grid(const Snapshot& now) {
  Grid grid{{{"METRIC"}, {"VALUE", true}, {"IS"}}, {}, ""};
  for (const control::MetricSnapshot& metric : now.metrics) {
    if (metric.value != 0) grid.rows.push_back({text(metric.name), count(metric.value), text(metric.text)});
  }
  return grid;
}

std::vector<std::string> grid_lines(const Grid& grid, const GridStyle& style, std::vector<std::string>* left_out) {
  if (grid.rows.empty()) return {grid.when_empty};
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < grid.columns.size(); ++column) {
    std::size_t width = heading_of(grid, column, style).size();
    for (const auto& row : grid.rows) width = std::max(width, row[column].text.size());
    widths.push_back(width);
  }
  const std::vector<std::size_t> columns = fitting(grid, widths, style.width);
  for (std::size_t column = 0; left_out != nullptr && column < grid.columns.size(); ++column) {
    if (std::ranges::find(columns, column) == columns.end()) left_out->push_back(grid.columns[column].heading);
  }
  std::vector<const std::vector<Cell>*> rows;
  for (const auto& row : grid.rows) rows.push_back(&row);
  if (style.sorted_by >= 0) {
    const auto by = static_cast<std::size_t>(style.sorted_by);
    std::ranges::stable_sort(rows, [&](const auto* a, const auto* b) {
      if (!grid.columns[by].right) return (*a)[by].text < (*b)[by].text;
      return (*a)[by].value > (*b)[by].value;
    });
  }
  if (style.reverse) std::ranges::reverse(rows);
  std::vector<std::string> lines;
  Line headings({false, style.width});
  for (const std::size_t column : columns) {
    headings.add(heading_of(grid, column, style), widths[column], grid.columns[column].right, false);
  }
  lines.push_back(style.color ? bold + headings.take() + plain : headings.take());
  for (const auto* row : rows) {
    Line line(style);
    for (const std::size_t column : columns) {
      line.add((*row)[column].text, widths[column], grid.columns[column].right, (*row)[column].wrong);
    }
    lines.push_back(line.take());
  }
  return lines;
}

}  // namespace sluice::cli
