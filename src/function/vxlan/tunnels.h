// What [vxlan] says: tunnels, each the other side of a port whose device is "vxlan".
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/option.h"
#include "base/settings.h"
#include "engine/port_table.h"
#include "packet/ip_address.h"
#include "packet/vxlan.h"

namespace sluice::function {

struct Tunnel {
  std::uint16_t port = 0;  // index
  std::uint32_t vni = 0;
  packet::IpAddress local;
  std::vector<packet::IpAddress> remotes;  // to all of which goes what has no known place
  bool learning = true;
  std::uint16_t udp_port = packet::vxlan_port;
  std::uint8_t ttl = 64;
  bool inherit_ttl = false;
  std::uint8_t dscp = 0;
  bool inherit_dscp = false;
  packet::VxlanFront::DontFragment dont_fragment = packet::VxlanFront::DontFragment::unset;
  bool udp_checksum = false;
  std::map<std::uint64_t, packet::IpAddress> stations;  // by packet::mac_word(); [[vxlan.tunnel.fdb]]
  bool operator==(const Tunnel&) const = default;
};

// All remotes of a tunnel: those that frames are flooded to, then those that stations alone are behind.
std::vector<packet::IpAddress> remotes_of(const Tunnel& tunnel);

// Whether the port is an end of these tunnels.
inline bool is_tunnel_port(const engine::PortInfo& port) {
  return port.is_virtual && port.device == "vxlan";
}

struct TunnelSettings {
  std::vector<Tunnel> tunnels;
  std::uint32_t most_learned = 16384;  // stations of each tunnel
  std::uint32_t ageing = 300;          // seconds
};

// Of all tunnels, once each.
std::set<packet::IpAddress> remotes_of(const TunnelSettings& settings);
// Whether the tunnel's port was the end of one with another VNI.
bool changes_network(const TunnelSettings& before, const Tunnel& tunnel);

// The keys of [vxlan] itself.
const std::vector<Option<TunnelSettings>>& vxlan_settings();
// Those of its sections, too.
std::vector<OptionSection> vxlan_sections();

// Reports what is wrong to `settings`, with its place; what it returns then is good for nothing.
TunnelSettings read_tunnels(Settings& settings, const engine::PortTable& ports);

// A sentence for each tunnel whose `local` no port has, where ports have addresses at all: others may come from
// elsewhere.
std::vector<std::string> local_notes(Settings& settings, const engine::PortTable& ports);

}  // namespace sluice::function
