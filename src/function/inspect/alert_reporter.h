// Hands alerts to the sink. Those of a request line wait for its headers, if these come in the same frame, so that they
// can be reported with them. Those that wait come first.
//
// Lifetime: the sink outlives it. What a held alert points to stays until report_held(). Thread-safety: none, of one
// lane.
#pragma once

#include <cstddef>
#include <vector>

#include "function/inspect/judgement.h"

namespace sluice::function {

class AlertReporter {
 public:
  explicit AlertReporter(AlertSink& sink) : sink_(sink) { held_.reserve(most_held); }

  // `holds`: it waits, if there is capacity.
  void report(const Alert& alert, bool holds) {
    if (holds && held_.size() < most_held) {
      held_.push_back(alert);
      return;
    }
    report_held();
    sink_.alert(alert);
  }
  void report_held() {
    if (!held_.empty()) [[unlikely]]
      report_all();
  }
  AlertSink& sink() { return sink_; }

 private:
  static constexpr std::size_t most_held = 16;

  [[gnu::noinline]] void report_all() {
    for (const Alert& alert : held_) sink_.alert(alert);
    held_.clear();
  }

  AlertSink& sink_;
  std::vector<Alert> held_;
};

}  // namespace sluice::function
