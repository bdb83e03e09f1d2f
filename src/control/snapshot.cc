#include "control/snapshot.h"

#include <chrono>
#include <ctime>

#include "base/units.h"

namespace sluice::control {

LaneSnapshot total(const Snapshot& snapshot) {
  LaneSnapshot sum;
  for (const LaneSnapshot& lane : snapshot.lanes) {
    for (const auto field :
         {&LaneSnapshot::rx_frames, &LaneSnapshot::rx_bytes, &LaneSnapshot::tx_frames, &LaneSnapshot::tx_bytes,
          &LaneSnapshot::injected, &LaneSnapshot::emitted, &LaneSnapshot::cloned, &LaneSnapshot::consumed,
          &LaneSnapshot::punted, &LaneSnapshot::dropped, &LaneSnapshot::in_flight, &LaneSnapshot::batches,
          &LaneSnapshot::sealed_full, &LaneSnapshot::receive_stalls, &LaneSnapshot::misses,
          &LaneSnapshot::misses_stalled, &LaneSnapshot::collecting_ns, &LaneSnapshot::forwarding_ns}) {
      sum.*field += lane.*field;
    }
  }
  return sum;
}

std::string device_text(const DeviceSnapshot& device) {
  std::string text = device.name + " is " + device.state;
  if (device.why.empty()) return text;
  const auto since = static_cast<std::time_t>(device.since);
  std::tm utc{};
  gmtime_r(&since, &utc);
  char when[32];
  const std::size_t n = std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &utc);
  text += " since " + std::string(when, n) + ": " + device.why;
  if (device.longest_gap_ns != 0) {
    text += "; a batch waited " + duration_text(std::chrono::microseconds(device.longest_gap_ns / 1000)) + " at most";
  }
  return text;
}

bool RouteQuery::matches(const packet::IpPrefix& route) const {
  if (!prefix) return true;
  if (prefix->address.family != route.address.family) return false;
  return route.length <= prefix->length ? route.contains(prefix->address) : prefix->contains(route.address);
}

}  // namespace sluice::control
