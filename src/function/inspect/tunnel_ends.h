// What is said of the tunnel that a packet was found in.
#pragma once

#include <cstdint>

#include "packet/ip_address.h"
#include "packet/metadata.h"

namespace sluice::function {

struct TunnelEnds {
  packet::Tunnel kind = packet::Tunnel::none;  // the innermost, around the packet
  std::uint8_t depth = 0;                      // tunnels around the packet; 0: none
  // Of the outermost packet; family 0: it is no IP.
  std::uint8_t family = 0;
  std::uint8_t protocol = 0;
  std::uint16_t source_port = 0, destination_port = 0;
  packet::IpAddress source, destination;
};

}  // namespace sluice::function
