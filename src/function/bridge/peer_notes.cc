// What is said of ports that a bridge sends back to where frames come from.
#include "function/bridge/peer_notes.h"

#include <algorithm>
#include <cstddef>

namespace sluice::function {
namespace {

// An empty text: nothing.
std::string why_no_wire(const engine::PortInfo& port, bool is_own_peer, bool has_tunnels) {
  if (!is_own_peer || port.names_peer) return {};
  if (port.is_virtual) return "what comes out of its tunnel goes back into it";
  // Beside tunnels it is one that their outer frames leave by: docs/vxlan.md.
  if (!has_tunnels) return "it is its own, and what comes in by it leaves by it again";
  return port.has_twin ? "" : "there is no twin either: what comes in by it and is no tunnel's goes nowhere";
}

}  // namespace

std::vector<std::string> peer_notes(const engine::SectionView& view) {
  const engine::PortTable& ports = view.ports;
  const auto is_kept = [&](std::size_t p) {
    return std::ranges::find(view.kept_ports, ports[p].name) != view.kept_ports.end();
  };
  std::size_t forwarding = 0;
  bool has_tunnels = false;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    forwarding += is_kept(p) ? 0 : 1;
    has_tunnels = has_tunnels || ports[p].is_virtual;
  }
  std::vector<std::string> notes;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    if (is_kept(p)) continue;
    const std::uint16_t peer = ports.peer(static_cast<std::uint16_t>(p));
    const std::string port = "port '" + ports[p].name + "' ";
    const std::string what_to_do = "; set peer to the name of the port that its frames are to leave by";
    if (peer != p && is_kept(peer)) {
      notes.push_back(port + "sends to '" + ports[peer].name + "', which the chain uses for something else" +
                      what_to_do);
      continue;
    }
    const std::string why = why_no_wire(ports[p], peer == p, has_tunnels);
    if (forwarding > 1 && !why.empty()) notes.push_back(port + "has no peer: " + why + what_to_do);
  }
  return notes;
}

}  // namespace sluice::function
