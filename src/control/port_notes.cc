#include "control/port_notes.h"

#include <algorithm>

#include "packet/ip_address.h"

namespace sluice::control {
namespace {

using port::InterfaceAddress;
using port::PortOptions;

bool share_a_subnet(const InterfaceAddress& a, const InterfaceAddress& b) {
  if (a.address.family != b.address.family) return false;
  const unsigned length = std::min(a.length, b.length);
  // A host's own address is no subnet that others are in.
  if (length == a.address.bits()) return false;
  return packet::IpPrefix::of(a.address, length) == packet::IpPrefix::of(b.address, length);
}

// Of each pair of ports once.
void note_subnets(const std::vector<PortOptions>& ports, std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      for (const InterfaceAddress& later : ports[i].addresses) {
        const auto same = std::ranges::find_if(ports[j].addresses,
                                               [&](const InterfaceAddress& one) { return share_a_subnet(one, later); });
        if (same == ports[j].addresses.end()) continue;
        notes.push_back("port '" + ports[i].name + "' address = \"" + later.str() + "\" is in the subnet of port '" +
                        ports[j].name + "', " + same->str() +
                        ": the kernel reaches a subnet by one of its interfaces alone; give each port a subnet of its "
                        "own");
        break;
      }
    }
  }
}

}  // namespace

std::vector<std::string> port_notes(const engine::Options& options) {
  std::vector<std::string> notes;
  note_subnets(options.ports, notes);
  return notes;
}

}  // namespace sluice::control
