// The kernel's neighbours (ARP and ND caches) on twins, and which of them have been announced to the control plane. An
// address is announced with its MAC while the kernel holds it valid, and taken back when the kernel gives it up.
//
// Forwarded traffic does not pass the kernel, so the kernel would let a neighbour go stale for ever: due() names those
// to probe.
//
// Thread-safety: none (the control thread). Cost: one hash lookup a message; due() passes over all neighbours.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/netlink/decoder.h"
#include "control/netlink/hop_table.h"
#include "function/control_plane.h"

namespace sluice::control::netlink {

class NeighbourShadow {
 public:
  using Clock = std::chrono::steady_clock;
  struct Key {
    int ifindex = 0;
    packet::IpAddress address;
    bool operator==(const Key&) const = default;
  };

  // `ports` says which interfaces are twins.
  NeighbourShadow(function::ControlPlane& plane, const HopTable& ports) : plane_(plane), ports_(ports) {}

  void apply(const NeighbourMessage& message);
  void begin_dump() { ++generation_; }
  // Forgets every neighbour that was not named since begin_dump().
  void end_dump();
  // Announces everything again that lies on `ifindex`, which has become the twin of another port or of none (`before`:
  // of which).
  void moved(int ifindex, std::optional<function::PortIndex> before);

  // At most `limit` stale neighbours on twins that were not named in the last `interval`; they count as probed at
  // `now`.
  std::vector<Key> due(Clock::time_point now, Clock::duration interval, std::size_t limit);
  // It was not probed after all: due() names it again.
  void not_probed(const Key& key);

  // What is announced from now on is counted as found by a comparison, or is not.
  void count_as_found(bool found) { counts_as_found_ = found; }
  std::uint64_t found() const { return found_; }

  std::size_t announced() const { return announced_; }
  // Announces neighbours again that were refused, until `limit` of them in a row are refused still.
  void retry_refused(std::size_t limit);
  // Neighbours that are refused now.
  std::size_t refused() const { return refused_; }
  std::size_t refusals() const { return refusals_; }
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Entry {
    std::optional<packet::MacAddress> mac;  // only while the kernel holds it valid
    std::optional<packet::MacAddress> announced;
    bool refused = false;  // announced, but not taken as a whole: to be taken back all the same
    bool stale = false;
    std::uint32_t generation = 0;
    Clock::time_point probed{};
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  void announce(const Key& key, Entry& entry, bool again = false);
  void set_refused(Entry& entry, bool refused);
  void note(const Expected<void>& answer);

  function::ControlPlane& plane_;
  const HopTable& ports_;
  std::unordered_map<Key, Entry, Hash> entries_;
  std::uint32_t generation_ = 0;
  std::size_t announced_ = 0;
  std::size_t refused_ = 0;  // entries that are
  bool counts_as_found_ = false;
  std::uint64_t found_ = 0;
  std::size_t refusals_ = 0;
  std::string last_refusal_;
};

}  // namespace sluice::control::netlink
