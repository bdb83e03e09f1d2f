// What the program's log says of packets with data for whose conversations there was no record
// (inspect_streams_refused).
//
//   RefusedStreamsNotes notes;
//   if (const std::string line = notes.line(refused, now); !line.empty()) spdlog::warn("{}", line);
//
// Thread-safety: none, of the thread that logs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace sluice::function {

class RefusedStreamsNotes {
 public:
  // Empty: there are none since the last line, or that was less than `interval` ago. `refused`: since the start. `now`:
  // nanoseconds.
  std::string line(std::uint64_t refused, std::uint64_t now) {
    if (refused == said_ || now < next_) return {};
    const std::uint64_t more = refused - std::exchange(said_, refused);
    next_ = now + interval;
    return "inspect: " + std::to_string(more) + " packet" + (more == 1 ? "" : "s") +
           " with data since this was last said, of conversations that were not put together because all [inspect] "
           "streams are in use (inspect_streams_refused): they were inspected each by itself, and not as HTTP";
  }

  static constexpr std::uint64_t interval = 10'000'000'000;

 private:
  std::uint64_t said_ = 0, next_ = 0;
};

}  // namespace sluice::function
