#include "control/loading.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

namespace sluice::control {
namespace {

constexpr std::chrono::seconds first_show{1};
constexpr std::chrono::seconds between_lines{1};
constexpr std::chrono::milliseconds between_drawings{200};
constexpr std::size_t bar_length = 30;
constexpr const char* erase_line = "\r\033[K";

}  // namespace

int waiting_end_signal() {
  sigset_t waiting;
  sigpending(&waiting);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT}) {
    if (sigismember(&waiting, signal) == 1) return signal;
  }
  return 0;
}

std::string progress_text(const Loading::State& state, bool bar) {
  std::string text = state.what + ": ";
  if (state.total == 0) return text + std::to_string(state.done);
  const std::size_t done = std::min(state.done, state.total);
  if (bar) {
    const std::size_t full = done * bar_length / state.total;
    text += "[" + std::string(full, '#') + std::string(bar_length - full, '.') + "] ";
  }
  return text + std::to_string(done * 100 / state.total) + "% (" + std::to_string(done) + " of " +
         std::to_string(state.total) + ")";
}

Loading::Loading(bool on_terminal) : on_terminal_(on_terminal) {}

bool Loading::step(std::string_view what, std::size_t done, std::size_t total, Clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    if (state_.what.empty()) next_show_ = now + first_show;
    state_.what = what;
    state_.done = done;
    state_.total = total;
  }
  if (now >= next_show_) show(now);
  return !stopped_ && waiting_end_signal() == 0;
}

void Loading::show(Clock::time_point now) {
  const std::string text = progress_text(state(), on_terminal_);
  if (on_terminal_) {
    std::fprintf(stderr, "%s%s", erase_line, text.c_str());
    drawn_ = true;
    next_show_ = now + between_drawings;
  } else {
    spdlog::info("{}", text);
    next_show_ = now + between_lines;
  }
}

void Loading::done() {
  if (drawn_) std::fputs(erase_line, stderr);
  drawn_ = false;
  const std::lock_guard lock(mutex_);
  state_ = {};
}

Loading::State Loading::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace sluice::control
