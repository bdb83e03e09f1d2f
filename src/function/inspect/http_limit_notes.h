// What the program's log says of HTTP that goes beyond a limit (flow/http/settings.h, Limit): which settings to look
// at.
//
//   HttpLimitNotes notes;
//   if (const std::string line = notes.line(counts, now, drops); !line.empty()) spdlog::warn("{}", line);
//
// Thread-safety: none, of the thread that logs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "flow/http/settings.h"

namespace sluice::function {

class HttpLimitNotes {
 public:
  using Counts = std::array<std::uint64_t, flow::http::limits>;  // by Limit, since the start

  // Empty: there are none since the last line, or that was less than `interval` ago. `now`: nanoseconds.
  std::string line(const Counts& counts, std::uint64_t now, bool drops);

  static constexpr std::uint64_t interval = 10'000'000'000;

 private:
  Counts said_{};
  std::uint64_t next_ = 0;
};

}  // namespace sluice::function
