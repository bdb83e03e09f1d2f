// The program's log: spdlog's default logger, as [log] of the configuration says.
//
// text: "2026-01-31 12:00:00.123 info  message"; json: one object a line,
// {"time":"2026-01-31T12:00:00.123Z","level":"info", "message":"..."}, always valid JSON, whatever bytes a message
// holds. A file is begun anew after it was renamed by AppendedFile::reopen_all(). Nothing on the packet path logs.
// Thread-safety: set_up_log() from the control thread before others start; logging and LogLimiter from any thread.
#pragma once

#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "control/config.h"

namespace sluice::control {

// An Error when the file cannot be opened for appending; the log is then as before.
Expected<void> set_up_log(const LogOptions& options);

// Lets one message through in each interval and counts those it holds back.
class LogLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  explicit LogLimiter(Clock::duration interval = std::chrono::seconds(10)) : interval_(interval) {}
  // Nothing: hold this message back. Else: let it through, with how many were held back before it.
  std::optional<std::uint64_t> admit(Clock::time_point now = Clock::now());

 private:
  const Clock::duration interval_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::uint64_t> held_back_{0};
};

}  // namespace sluice::control
