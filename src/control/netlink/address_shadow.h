// The kernel's addresses, and which of them the control plane is to speak from. Of each port that is the first
// address of its twin. For ports without one it is the first of any twin, or else of any interface (a loopback address
// of a router whose twins have none, for instance).
//
// Announced are addresses that others can answer to: not of host or link scope, not IPv4 link-local, not tentative
// ones. Of one interface the kernel's order holds, but secondary, deprecated and temporary addresses come last.
//
// Thread-safety: none (the control thread). Cost: a look at all addresses for each message, and for each settle() after
// a change.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "control/netlink/decoder.h"
#include "control/netlink/hop_table.h"
#include "function/control_plane.h"

namespace sluice::control::netlink {

class AddressShadow {
 public:
  // `ports` says which interfaces are twins.
  AddressShadow(function::ControlPlane& plane, const HopTable& ports) : plane_(plane), ports_(ports) {}

  void apply(const AddressMessage& message);
  void begin_dump() { ++generation_; }
  // Forgets every address that was not named since begin_dump().
  void end_dump();
  // An interface has become the twin of another port or of none.
  void moved() { changed_ = true; }
  // Whether the interface has any address of the family (4, 6).
  bool has(int ifindex, int family) const;
  // Announces what is different now.
  void settle();

 private:
  struct Entry {
    int ifindex = 0;
    packet::IpAddress address;
    bool usable = false;
    bool last_choice = false;
    std::uint32_t generation = 0;
  };
  using Slot = std::pair<std::optional<function::PortIndex>, std::uint8_t>;  // with the family

  function::ControlPlane& plane_;
  const HopTable& ports_;
  std::vector<Entry> entries_;  // in the kernel's order
  std::map<Slot, packet::IpAddress> announced_;
  std::uint32_t generation_ = 0;
  bool changed_ = false;
};

}  // namespace sluice::control::netlink
