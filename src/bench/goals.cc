#include "bench/goals.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <cstdio>

namespace sluice::cli::bench {
namespace {

double as_printed(double value) {
  return std::round(value * 10) / 10;
}

// Without a fraction where there is none: "0", "90", "2.5".
std::string number(double value) {
  const double printed = as_printed(value);
  return printed == std::floor(printed) ? fmt::format("{:.0f}", printed) : fmt::format("{:.1f}", printed);
}

}  // namespace

void Goals::judge(bool reached, const std::string& line) {
  if (judged_) {
    (reached ? reached_ : missed_) += 1;
    std::printf("GOAL %s: %s %s\n", reached ? "reached" : "MISSED", bench_.c_str(), line.c_str());
  }
}

void Goals::at_least(const std::string& what, double figure, double goal, const std::string& unit) {
  judge(as_printed(figure) >= as_printed(goal),
        fmt::format("{}: {} {}, at least {}", what, number(figure), unit, number(goal)));
}

void Goals::at_most(const std::string& what, double figure, double goal, const std::string& unit) {
  judge(as_printed(figure) <= as_printed(goal),
        fmt::format("{}: {} {}, at most {}", what, number(figure), unit, number(goal)));
}

void Goals::without(const std::string& what, const std::string& why) const {
  if (judged_) {
    std::printf("GOAL not judged: %s %s: %s\n", bench_.c_str(), what.c_str(), why.c_str());
  }
}

int Goals::status() const {
  if (reached_ + missed_ != 0) {
    std::printf("goals: %u of %u reached\n", reached_, reached_ + missed_);
    std::fflush(stdout);
  }
  return missed_ == 0 ? 0 : 1;
}

}  // namespace sluice::cli::bench
