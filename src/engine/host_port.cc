#include "engine/host_port.h"

#include <rte_ring.h>
#include <unistd.h>

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
  if (host_sleeps->load(std::memory_order_relaxed) && host_sleeps->exchange(false)) {
    const std::uint64_t one = 1;
    // A failed wake-up costs one sleep period, not a frame: the host thread looks at the ring anyway.
    [[maybe_unused]] const ssize_t written = write(wake_fd, &one, sizeof one);
  }
  return packet::no_reason;
}

}  // namespace sluice::engine
