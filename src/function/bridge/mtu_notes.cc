// What is said of ports that a bridge connects and that have different MTUs.
#include "function/bridge/mtu_notes.h"

#include <algorithm>

#include "port/virtual_device.h"

namespace sluice::function {

// A router says "too big" to who sends what does not fit; a bridge has nothing to say it with. A tunnel's end does say
// so, and has less than the ports beside it by nature.
std::vector<std::string> mtu_notes(const std::vector<port::PortOptions>& ports) {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto is_peer = [&](const port::PortOptions& other) {
      return ports[i].peer.empty() ? ports.size() == 2 && &other != &ports[i] : other.name == ports[i].peer;
    };
    const auto peer = std::ranges::find_if(ports, is_peer);
    if (peer == ports.end() || peer->mtu >= ports[i].mtu || port::is_virtual(peer->device)) continue;
    notes.push_back("port '" + ports[i].name + "' mtu = " + std::to_string(ports[i].mtu) + " and its peer '" +
                    peer->name + "' has " + std::to_string(peer->mtu) +
                    ": a bridge notifies no sender, and what is longer is lost there, counted in the peer's tx_errors; "
                    "give both the same mtu");
  }
  return notes;
}

}  // namespace sluice::function
