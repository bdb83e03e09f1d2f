#include "cli/top_view.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <sstream>

#include "cli/report.h"
#include "control/health.h"

namespace sluice::cli {
namespace {

using control::Snapshot;
using View = TopView::View;

constexpr const char* red = "\x1b[31m";
constexpr const char* plain = "\x1b[0m";
constexpr std::string_view between_facts = "   ";
constexpr unsigned most_ailments = 3, most_metrics = 8;  // lines of the overview

constexpr const char* names[] = {"overview", "ports", "lanes", "drops", "devices", "health", "keys"};
constexpr View tables[] = {View::ports, View::lanes, View::drops, View::devices};

Grid grid_of(View view, const Snapshot& now, const Rates& rates) {
  switch (view) {
    case View::ports:
      return port_grid(now, rates);
    case View::lanes:
      return lane_grid(now, rates);
    case View::devices:
      return device_grid(now, rates);
    default:
      return drop_grid(now, rates);
  }
}

std::size_t column_count(View view) {
  return grid_of(view, Snapshot(), Rates(Snapshot(), nullptr)).columns.size();
}

std::vector<std::string> split(const std::string& text, std::string_view at) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + at.size()) {
    end = text.find(at, begin);
    if (end != begin) parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

// `rows` lines of a table of which more there is; the last says so.
void shorten(std::vector<std::string>& lines, std::size_t rows, const std::string& how) {
  if (lines.size() <= rows || rows == 0) return;
  const std::size_t more = lines.size() - rows + 1;
  lines.resize(rows - 1);
  lines.push_back(fmt::format("... {} more{}", more, how));
}

const char* const help[] = {
    "1 to 6     overview, ports, lanes, drops, devices, health",
    "Tab        the next of these",
    "s, S       sort by the next column, by the one before (marked with *)",
    "r          the other way round",
    "p, space   pause and go on",
    "h, ?       this, and back",
    "q          end",
    "",
    "Rates are of the last interval (--interval). MISSED of a port: frames that it",
    "had no capacity for; of a lane: frames sent after their deadline. BUSY is the share",
    "of a core, NS/FRAME the time for a frame. bound: an estimate or a measurement",
    "for the engine alone (docs/engine.md); what was measured is behind p50 to max.",
};

}  // namespace

std::vector<std::string> wrap(const std::string& text, unsigned width, unsigned indent) {
  if (width == 0 || text.size() <= width) return {text};
  std::vector<std::string> lines;
  std::string line;
  const auto add = [&](const std::string& part, std::string_view space) {
    const bool first = line.empty() || line.size() == indent;
    if (!first && line.size() + space.size() + part.size() > width) {
      lines.push_back(line);
      line = std::string(indent, ' ') + part;
    } else {
      line += (line.empty() || line.find_first_not_of(' ') == std::string::npos ? "" : std::string(space)) + part;
    }
  };
  for (const std::string& fact : split(text, between_facts)) {
    if (fact.size() + indent <= width) {
      add(fact, between_facts);
      continue;
    }
    bool first = true;
    for (const std::string& word : split(fact, " ")) {
      add(word, first ? between_facts : " ");
      first = false;
    }
  }
  lines.push_back(line);
  for (std::string& one : lines) one.resize(std::min<std::size_t>(one.size(), width));  // a word that is longer
  return lines;
}

bool TopView::press(char key) {
  const bool is_table = std::ranges::find(tables, view_) != std::end(tables);
  switch (key) {
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
      view_ = static_cast<View>(key - '1');
      return true;
    case '\t':
      view_ = static_cast<View>((static_cast<int>(view_) + 1) % static_cast<int>(View::help));
      return true;
    case 'h':
    case '?':
      view_ = view_ == View::help ? View::overview : View::help;
      return true;
    case 'p':
    case ' ':
      paused_ = !paused_;
      return true;
    case 's':
    case 'S': {
      if (!is_table) return false;
      const int columns = static_cast<int>(column_count(view_));
      int column = sorted_by_.contains(view_) ? sorted_by_[view_] : -1;
      column += key == 's' ? 1 : -1;
      if (column == columns) column = -1;
      if (column < -1) column = columns - 1;
      sorted_by_[view_] = column;
      return true;
    }
    case 'r':
      if (!is_table) return false;
      reverse_[view_] = !reverse_[view_];
      return true;
    default:
      return false;
  }
}

GridStyle TopView::style(View view, unsigned width) const {
  GridStyle style{color_, width};
  if (const auto by = sorted_by_.find(view); by != sorted_by_.end()) style.sorted_by = by->second;
  if (const auto way = reverse_.find(view); way != reverse_.end()) style.reverse = way->second;
  return style;
}

TopView::Lines TopView::health(const Snapshot& now, unsigned width, unsigned most) const {
  Lines lines;
  for (const control::Ailment& one : control::find_ailments(now)) {
    const std::string text = one.what + (one.remedy.empty() ? "" : " (" + one.remedy + ")");
    for (std::string& line : wrap(text, width, 2)) lines.push_back(std::move(line));
  }
  shorten(lines, most, view_ == View::health ? "" : ": key 6");
  if (color_) {
    for (std::string& line : lines) line = red + line + plain;
  }
  return lines;
}

TopView::Lines TopView::overview(const Snapshot& now, const Rates& rates, unsigned width, unsigned height) const {
  Lines lines;
  std::istringstream head(top_head(now, rates));
  for (std::string line; std::getline(head, line);) {
    for (std::string& part : wrap(line, width, 2)) lines.push_back(std::move(part));
  }
  for (std::string& line : health(now, width, most_ailments)) lines.push_back(std::move(line));
  // Each part keeps space for a heading and a row of those behind it, but for devices, which get what is left.
  constexpr std::size_t least_part = 3;
  constexpr std::size_t sure_parts = 3;
  constexpr View parts[] = {View::ports, View::lanes, View::drops, View::devices};
  for (std::size_t i = 0; i < std::size(parts); ++i) {
    Lines rows = grid_lines(grid_of(parts[i], now, rates), style(parts[i], width));
    const std::size_t left = height > lines.size() ? height - lines.size() : 0;
    const std::size_t kept = least_part * (sure_parts - std::min(i + 1, sure_parts));
    const std::size_t lines_left = left > kept + least_part ? left - kept : std::min(left, least_part);
    if (lines_left < 2) break;
    lines.emplace_back();
    shorten(rows, lines_left - 1, fmt::format(": key {}", static_cast<int>(parts[i]) + 1));
    for (std::string& row : rows) lines.push_back(std::move(row));
  }
  // Metrics get lines that nothing else needs.
  const Grid metrics = metric_grid(now);
  const std::size_t left = height > lines.size() ? height - lines.size() : 0;
  if (metrics.rows.empty() || left < least_part) return lines;
  Lines rows = grid_lines(metrics, {color_, width});
  lines.emplace_back();
  shorten(rows, std::min<std::size_t>(left - 1, most_metrics + 1), ": sluice ctl stats");
  for (std::string& row : rows) lines.push_back(std::move(row));
  return lines;
}

TopView::Lines TopView::table(const Snapshot& now, const Rates& rates, unsigned width, unsigned height) const {
  std::vector<std::string> left_out;
  Lines lines = grid_lines(grid_of(view_, now, rates), style(view_, width), &left_out);
  const std::size_t lines_left = height - std::min(height, left_out.empty() ? 0U : 2U);
  shorten(lines, lines_left, "");
  if (!left_out.empty()) {
    lines.emplace_back();
    lines.push_back(wrap(fmt::format("no space for {}", fmt::join(left_out, ", ")), width)[0]);
  }
  return lines;
}

std::string TopView::foot(unsigned width) const {
  const std::string text = fmt::format("[{}]{}  1-6 view  s sort  r reverse  p pause  ? keys  q quit",
                                       names[static_cast<int>(view_)], paused_ ? " PAUSED" : "");
  return text.substr(0, width);
}

std::string TopView::screen(Lines lines, unsigned width, unsigned height) const {
  lines.resize(height == 0 ? 0 : height - 1);
  if (height != 0) lines.push_back(foot(width));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string TopView::draw(const Snapshot& now, const Snapshot* before, unsigned width, unsigned height) const {
  const Rates rates(now, before);
  const unsigned lines_left = height - std::min(height, 1U);
  switch (view_) {
    case View::overview:
      return screen(overview(now, rates, width, lines_left), width, height);
    case View::health: {
      Lines lines = health(now, width, lines_left);
      if (lines.empty()) lines.emplace_back("nothing is wrong");
      return screen(std::move(lines), width, height);
    }
    case View::help: {
      Lines lines;
      for (const char* line : help) {
        for (std::string& part : wrap(line, width, 2)) lines.push_back(std::move(part));
      }
      return screen(std::move(lines), width, height);
    }
    default:
      return screen(table(now, rates, width, lines_left), width, height);
  }
}

std::string TopView::draw(const std::string& message, unsigned width, unsigned height) const {
  Lines lines = wrap(message, width);
  lines.emplace_back();
  lines.emplace_back("trying again");
  return screen(std::move(lines), width, height);
}

}  // namespace sluice::cli
