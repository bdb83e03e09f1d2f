// The addresses from which the router speaks, by port and IP version (RFC 1812 section 4.3.2.4), for lanes to read
// while the control plane changes them.
//
// Thread-safety: one writer, any number of readers, which take one load. What a reader was given stays valid: every
// address that was ever set is kept, some 50 bytes for each different one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "function/control_plane.h"
#include "packet/ip_address.h"

namespace sluice::function {

class SourceAddresses {
 public:
  explicit SourceAddresses(std::size_t ports) : slots_(ports + 1) {}

  // As ControlPlane::set_source().
  void set(std::optional<PortIndex> port, int family, const packet::IpAddress& address) {
    const packet::IpAddress* const kept = address.empty() ? nullptr : &*ever_.insert(address).first;
    const std::size_t slot = port ? *port : slots_.size() - 1;
    slots_.at(slot)[family == 6].store(kept, std::memory_order_release);
  }
  // The port's, or else the one for ports that have none; null: there is none.
  const packet::IpAddress* of(PortIndex port, int family) const {
    const packet::IpAddress* const own = slots_[port][family == 6].load(std::memory_order_acquire);
    return own != nullptr ? own : slots_.back()[family == 6].load(std::memory_order_acquire);
  }

 private:
  std::set<packet::IpAddress> ever_;
  std::vector<std::array<std::atomic<const packet::IpAddress*>, 2>> slots_;  // the last: for ports without one
};

}  // namespace sluice::function
