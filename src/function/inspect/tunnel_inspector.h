// Finds the packet in a tunnel (packet/metadata.h, Tunnel), to be inspected as one that came by itself: with a flow, a
// stream and HTTP of its own. The verdict is that of the frame that carries it.
//
//   if (tunnels.may_hold(packet.protocol, packet.destination_port) && tunnels.find(outer, inner)) ...
//
// No device has searched what a packet in a tunnel carries, so this core does.
//
// Thread-safety: none, of one lane. Cost: some 10 ns, and of a tunnel of IP without Ethernet a copy of the packet.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "function/inspect/inspection_environment.h"
#include "packet/metadata.h"

namespace sluice::function {

class TunnelInspector {
 public:
  explicit TunnelInspector(InspectionEnvironment& env);

  // Whether an IP packet may be a tunnel's that is looked into.
  bool may_hold(std::uint8_t protocol, std::uint16_t destination_port) const {
    return enabled_ && packet::may_be_tunnel(protocol, destination_port);
  }
  // The same of a frame without IP.
  bool may_hold_without_ip() const { return enabled_; }

  static constexpr unsigned most = 16;  // tunnels in each other
  // `outer` has been inspected by itself, and is in less than `most` tunnels. `inner`: made if there is a packet in its
  // tunnel, with its verdict and budget. Its frame is the one in the tunnel, or has the link addresses of `outer`;
  // valid until the next call. Its TunnelEnds are for as long as the frame is inspected.
  bool find(PacketContext& outer, std::optional<PacketContext>& inner);

 private:
  const TunnelEnds& ends_of(PacketContext& outer, packet::Tunnel kind);
  std::string_view frame_of(std::string_view outer, const packet::Metadata& inner);

  InspectionEnvironment& env_;
  const bool enabled_;
  std::vector<char> frame_;
  std::array<TunnelEnds, most> ends_;  // by depth, from 1 on
};

}  // namespace sluice::function
