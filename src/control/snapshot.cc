#include "control/snapshot.h"

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

bool RouteQuery::matches(const packet::IpPrefix& route) const {
  if (!prefix) return true;
  if (prefix->address.family != route.address.family) return false;
  return route.length <= prefix->length ? route.contains(prefix->address) : prefix->contains(route.address);
}

}  // namespace sluice::control
