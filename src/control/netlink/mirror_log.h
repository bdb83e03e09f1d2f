// Says in the log what went wrong between the kernel and the router's tables since it was last said. That is routes and
// neighbours that did not fit (with the reason), lost notifications, and messages that could not be read; requests that
// the kernel did not take, and next hops that are too many for one route. Each kind at most once in the interval; what
// was held back is counted into the next line.
//
// Thread-safety: none (the control thread). Cost: five comparisons when nothing happened.
#pragma once

#include "control/log.h"
#include "control/netlink/mirror.h"

namespace sluice::control {

class MirrorLog {
 public:
  using Clock = LogLimiter::Clock;
  explicit MirrorLog(Clock::duration interval = std::chrono::seconds(10));
  void look(const MirrorStats& stats, Clock::time_point now = Clock::now());

 private:
  struct Kind {
    LogLimiter limiter;
    std::uint64_t reported = 0;
  };
  // How many more there are than were reported; 0 also while the interval lasts.
  static std::uint64_t news(Kind& kind, std::uint64_t count, Clock::time_point now);

  Kind refusals_, overruns_, mended_, malformed_, unsent_, shortened_;
};

}  // namespace sluice::control
