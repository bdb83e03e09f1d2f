// For functions that forward from port to port: for each port the one that its frames leave through.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/port_table.h"

namespace sluice::function {

inline std::vector<std::uint16_t> peers_of(const engine::PortTable& ports) {
  std::vector<std::uint16_t> peers;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    peers.push_back(ports.peer(static_cast<std::uint16_t>(port)));
  }
  return peers;
}

}  // namespace sluice::function
