// What clients and servers meet, in the log at level info: of each kind so many lines a second at most, and then how
// many were left out. All of it is counted besides (metrics.h).
//
// Thread-safety: the proxy's thread alone.
#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::function::rtsp {

class EventLog {
 public:
  static constexpr unsigned lines_a_second = 10;
  using Time = std::chrono::steady_clock::time_point;

  void say(spdlog::level::level_enum level, const std::string& text, Time now = std::chrono::steady_clock::now()) {
    if (now >= next_) {
      next_ = now + std::chrono::seconds(1);
      if (left_out_ != 0) spdlog::log(level, "rtsp: {} lines like the next were left out", left_out_);
      left_ = lines_a_second;
      left_out_ = 0;
    }
    if (left_ == 0) {
      ++left_out_;
      return;
    }
    --left_;
    spdlog::log(level, "rtsp: {}", text);
  }

 private:
  Time next_{};
  unsigned left_ = 0;
  std::uint64_t left_out_ = 0;
};

// A kind each, so that none hides another.
struct EventLogs {
  EventLog refusals, omissions, servers, media, clients;
};

}  // namespace sluice::function::rtsp
