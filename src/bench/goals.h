// What a bench is aimed at. Each goal is said as it is judged, and the bench's exit status is that of all of them: 0
// when each was reached, 1 when one was missed. With --no-goals nothing is judged, nothing is said, and the status is
// 0.
//
// Figures are compared as they are printed, with one digit after the point.
#pragma once

#include <string>

namespace sluice::cli::bench {

class Goals {
 public:
  Goals(std::string bench, bool judged) : bench_(std::move(bench)), judged_(judged) {}

  void at_least(const std::string& what, double figure, double goal, const std::string& unit);
  void at_most(const std::string& what, double figure, double goal, const std::string& unit);
  // A goal that this machine or this run has no figure for: said, and neither reached nor missed.
  void without(const std::string& what, const std::string& why) const;

  // Says how many were reached. Once, at the end.
  int status() const;

 private:
  void judge(bool reached, const std::string& line);
  std::string bench_;
  bool judged_;
  unsigned reached_ = 0, missed_ = 0;
};

}  // namespace sluice::cli::bench
