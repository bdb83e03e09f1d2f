// How far a long step of the control path is, such as loading a table of routes, and whether to go on with it.
//
// Whoever does the step calls step() now and then. What takes longer than a second shows: as one line that is drawn
// anew when standard error is a terminal, else as a line in the log, at most one a second. The API shows state().
//
// Thread-safety: step() and done() on the thread that does the step, one at a time; the rest on any thread. Cost of
// step(): a system call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace sluice::control {

// SIGINT, SIGTERM or SIGQUIT when one of them waits for this process, which has them blocked; else 0.
int waiting_end_signal();

class Loading {
 public:
  using Clock = std::chrono::steady_clock;
  struct State {
    std::string what;  // empty: nothing is being loaded
    std::size_t done = 0, total = 0;
  };
  // `on_terminal`: draw on standard error instead of logging.
  explicit Loading(bool on_terminal);

  // `total` 0: not known. False: stop, because stop() was called or a signal to end has come.
  bool step(std::string_view what, std::size_t done, std::size_t total, Clock::time_point now = Clock::now());
  // The step is over, or given up: clears what was drawn.
  void done();
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  State state() const;

 private:
  void show(Clock::time_point now);

  const bool on_terminal_;
  std::atomic<bool> stopped_{false};
  mutable std::mutex mutex_;
  State state_;
  Clock::time_point next_show_{};
  bool drawn_ = false;
};

// "routes: 45% (270000 of 600000)", with a bar in front of the percentage when `bar`.
std::string progress_text(const Loading::State& state, bool bar);

}  // namespace sluice::control
