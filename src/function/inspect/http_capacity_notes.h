// What the program's log says when memory or records of HTTP run out (inspect_http_no_memory, inspect_http_evicted,
// inspect_http_bodies_lost).
//
//   HttpCapacityNotes notes;
//   if (const std::string line = notes.line(counts, now); !line.empty()) spdlog::warn("{}", line);
//
// Thread-safety: none, of the thread that logs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace sluice::function {

class HttpCapacityNotes {
 public:
  enum What : std::uint8_t { no_memory, evicted, bodies_lost };
  using Counts = std::array<std::uint64_t, 3>;  // by What, since the start

  // Empty: there are none since the last line, or that was less than `interval` ago. `now`: nanoseconds.
  std::string line(const Counts& counts, std::uint64_t now) {
    if (counts == said_ || now < next_) return {};
    const Counts before = std::exchange(said_, counts);
    next_ = now + interval;
    const auto more = [&](What what) { return std::to_string(counts[what] - before[what]); };
    return "inspect: capacity for HTTP has run out since this was last said: conversations without memory " +
           more(no_memory) + " (inspect_http_no_memory), evicted for others " + more(evicted) +
           " (inspect_http_evicted), bodies cut short " + more(bodies_lost) +
           " (inspect_http_bodies_lost); [inspect] http_memory and http say how much there is";
  }

  static constexpr std::uint64_t interval = 10'000'000'000;

 private:
  Counts said_{};
  std::uint64_t next_ = 0;
};

}  // namespace sluice::function
