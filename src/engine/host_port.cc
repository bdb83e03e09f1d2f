#include "engine/host_port.h"

#include <rte_ring.h>

namespace sluice::engine {

packet::Reason HostPort::punt(rte_mbuf* frame, bool exceptional) const {
  if (to_host == nullptr) {
    return no_twin;
  }
  if (exceptional && rte_ring_count(to_host) > rte_ring_get_capacity(to_host) / 2) {
    return punt_full;
  }
  if (rte_ring_mp_enqueue(to_host, frame) != 0) {
    return punt_full;
  }
  host_bell->ring();
  return packet::no_reason;
}

}  // namespace sluice::engine
