#include "control/netlink/mirror_log.h"

#include <utility>

namespace sluice::control {

MirrorLog::MirrorLog(Clock::duration interval)
    : refusals_{LogLimiter(interval)},
      overruns_{LogLimiter(interval)},
      mended_{LogLimiter(interval)},
      malformed_{LogLimiter(interval)},
      unsent_{LogLimiter(interval)},
      shortened_{LogLimiter(interval)} {}

std::uint64_t MirrorLog::news(Kind& kind, std::uint64_t count, Clock::time_point now) {
  if (count == kind.reported || !kind.limiter.admit(now)) return 0;
  return count - std::exchange(kind.reported, count);
}

void MirrorLog::look(const MirrorStats& stats, Clock::time_point now) {
  if (const auto n = news(refusals_, stats.refusals, now)) {
    spdlog::warn("kernel: {} changes of routes and neighbours refused; the last one: {}", n, stats.last_refusal);
  }
  if (const auto n = news(overruns_, stats.overruns, now)) {
    spdlog::warn("kernel: notifications were lost {} times; the tables are compared anew", n);
  }
  if (const auto n = news(mended_, stats.mended, now)) {
    spdlog::info("kernel: {} routes and neighbours had changed without a message and are mended{}", n,
                 stats.last_mended.empty() ? "" : "; the last route: " + stats.last_mended);
  }
  if (const auto n = news(malformed_, stats.malformed, now)) {
    spdlog::warn("kernel: {} messages passed over that are not as rtnetlink(7) says", n);
  }
  if (const auto n = news(unsent_, stats.unsent, now)) {
    spdlog::warn("kernel: {} probes and requests not taken, for want of memory; they are sent again", n);
  }
  if (const auto n = news(shortened_, stats.shortened, now)) {
    spdlog::warn("kernel: {} sets of next hops have more than the {} that a route can have; the first {} are used", n,
                 function::most_next_hops, function::most_next_hops);
  }
}

}  // namespace sluice::control
