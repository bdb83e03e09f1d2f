// Whose frames the kernel takes on each twin, and what it checks of them: links, the link addresses on top of a twin
// and the settings of IP there, announced to the control plane as function::PortIngress.
//
//   the twin is in a bridge, a bond, a team, a VRF, …;       everything is the kernel's
//   a macvlan of mode passthru or source on it
//   macvlan of mode bridge, vepa or private on the twin,     routed as frames for the twin are
//   up, in no master, with forwarding on
//   any other interface on the twin with its own address     the kernel's
//   address of the twin's filter (`bridge fdb`, a macvlan    the kernel's
//   in another network namespace)
//   promiscuous twin                                         frames for unknown addresses are the kernel's
//
// Thread-safety: none (the control thread). Cost: settle() passes over all links after a change, and reads two files of
// /proc for each interface that has a reverse path filter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/netlink/address_shadow.h"
#include "control/netlink/decoder.h"
#include "control/netlink/hop_table.h"
#include "function/control_plane.h"

namespace sluice::control::netlink {

class IngressShadow {
 public:
  // `ports` says which interfaces are twins.
  IngressShadow(function::ControlPlane& plane, const HopTable& ports, const AddressShadow& addresses)
      : plane_(plane), ports_(ports), addresses_(addresses) {}

  void apply(const LinkMessage& message);
  void forget(int ifindex);
  void apply(const LinkAddressMessage& message);
  void apply(const InterfaceSettingsMessage& message);
  // A full dump of link addresses lies between the two, which forgets those that it did not name.
  void begin_link_addresses() { ++generation_; }
  void end_link_addresses();
  // Addresses, or what is a twin, or a setting of which the kernel does not report, may have changed.
  void moved() { changed_ = true; }
  // Announces what is different now.
  void settle();

 private:
  struct Link {
    std::string name, kind;
    bool up = false;
    int master = 0, lower = 0;
    std::uint32_t macvlan_mode = 0, promiscuity = 0;
    std::optional<packet::MacAddress> mac;
    bool operator==(const Link&) const = default;
  };
  struct Settings {
    std::uint32_t forwarding = 0, rp_filter = 0;
    bool operator==(const Settings&) const = default;
  };
  struct LinkAddress {
    int ifindex = 0;
    packet::MacAddress mac;
    std::uint32_t generation = 0;
  };
  Settings settings(int family, int ifindex) const;
  function::Ingress ingress_of(int ifindex, const Link& link) const;
  function::PortIngress ingress_of_port(int twin, const Link& link) const;

  function::ControlPlane& plane_;
  const HopTable& ports_;
  const AddressShadow& addresses_;
  std::unordered_map<int, Link> links_;
  std::map<std::pair<int, int>, Settings> settings_;  // by family and interface
  std::vector<LinkAddress> link_addresses_;
  std::map<function::PortIndex, function::PortIngress> announced_;
  std::uint32_t generation_ = 0;
  bool changed_ = false;
};

}  // namespace sluice::control::netlink
