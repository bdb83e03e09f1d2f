// The screen of `sluice top`: which part of a gateway it shows and how, as keys choose it.
//
// A pure function of the snapshots, the size and the keys so far. Thread-safety: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/top_grid.h"
#include "control/snapshot.h"

namespace sluice::cli {

class TopView {
 public:
  enum class View { overview, ports, lanes, drops, devices, health, help };
  // `color`: the terminal shows bold type and red.
  explicit TopView(bool color) : color_(color) {}

  // What the key does; false: nothing.
  bool press(char key);
  bool paused() const { return paused_; }
  // Exactly `height` lines, none longer than `width` columns, joined by line breaks. Values are never cut.
  std::string draw(const control::Snapshot& now, const control::Snapshot* before, unsigned width,
                   unsigned height) const;
  // The same where there is no gateway to show.
  std::string draw(const std::string& message, unsigned width, unsigned height) const;

 private:
  using Lines = std::vector<std::string>;
  GridStyle style(View view, unsigned width) const;
  Lines overview(const control::Snapshot& now, const Rates& rates, unsigned width, unsigned height) const;
  Lines table(const control::Snapshot& now, const Rates& rates, unsigned width, unsigned height) const;
  Lines health(const control::Snapshot& now, unsigned width, unsigned most) const;
  std::string foot(unsigned width) const;
  std::string screen(Lines lines, unsigned width, unsigned height) const;

  const bool color_;
  View view_ = View::overview;
  bool paused_ = false;
  std::map<View, int> sorted_by_;  // a column; absent: as it comes
  std::map<View, bool> reverse_;
};

// Text of one fact after another, three spaces apart, in lines of `width`: facts stay whole where they fit, others are
// broken between words. Later lines begin with `indent` spaces. 0: one line.
std::vector<std::string> wrap(const std::string& text, unsigned width, unsigned indent = 0);

}  // namespace sluice::cli
