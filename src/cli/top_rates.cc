#include "cli/top_rates.h"

#include <algorithm>

namespace sluice::cli {
namespace {

using control::LatencySnapshot;
using control::Snapshot;

// Not after a restart of the gateway.
bool usable(const Snapshot& now, const Snapshot* before) {
  return before != nullptr && before->uptime_ns < now.uptime_ns && before->latency.frames <= now.latency.frames &&
         before->lanes.size() == now.lanes.size();
}

}  // namespace

Rates::Rates(const Snapshot& now, const Snapshot* before) : now_(now), before_(usable(now, before) ? before : nullptr) {
  const std::uint64_t since = before_ == nullptr ? 0 : before_->uptime_ns;
  seconds_ = std::max(1e-3, static_cast<double>(now.uptime_ns - since) / 1e9);
}

double Rates::lanes_per_second(std::uint64_t control::LaneSnapshot::*field) const {
  double sum = 0;
  for (std::size_t i = 0; i < now_.lanes.size(); ++i) sum += per_second(&Snapshot::lanes, i, field);
  return sum;
}

double Rates::drops_per_second(const control::DropSnapshot& now) const {
  std::uint64_t old = 0;
  for (std::size_t i = 0; before_ != nullptr && i < before_->drops.size(); ++i) {
    if (before_->drops[i].reason == now.reason) old = before_->drops[i].frames;
  }
  return static_cast<double>(now.frames - std::min(old, now.frames)) / seconds_;
}

std::uint64_t Rates::latency(double fraction) const {
  const LatencySnapshot& now = now_.latency;
  const LatencySnapshot none;
  const LatencySnapshot& old =
      before_ != nullptr && before_->latency.buckets.size() == now.buckets.size() ? before_->latency : none;
  const double frames = static_cast<double>(now.frames - old.frames);
  if (frames == 0) return 0;
  for (std::size_t i = 0; i < now.buckets.size(); ++i) {
    const std::uint64_t up_to = now.buckets[i].frames - (old.buckets.empty() ? 0 : old.buckets[i].frames);
    if (static_cast<double>(up_to) >= fraction * frames) return now.buckets[i].at_most_ns;
  }
  return now.max_ns;
}

}  // namespace sluice::cli
