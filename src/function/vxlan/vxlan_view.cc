#include "function/vxlan/vxlan_view.h"

#include <algorithm>
#include <cstring>

namespace sluice::function {
namespace {

bool has_address(const Tunnel& tunnel, const packet::VxlanView& outer) {
  return tunnel.local.family == outer.family &&
         std::memcmp(tunnel.local.bytes.data(), outer.destination, tunnel.local.bits() / 8) == 0;
}

bool is_for(const Tunnel& tunnel, const packet::VxlanView& outer) {
  return tunnel.udp_port == outer.port && has_address(tunnel, outer);
}

Remote make_remote(const Tunnel& tunnel, const packet::IpAddress& address, RemoteId id, const NextHop& hop) {
  Remote remote{.id = id, .address = address, .resolved = hop.resolved, .port = hop.port, .most = 0, .front = {}};
  if (!hop.resolved) return remote;
  const std::uint32_t ip_and_udp = packet::vxlan_front(address.family) - sizeof(packet::EthernetHeader);
  remote.most = hop.mtu > ip_and_udp ? hop.mtu - ip_and_udp : 0;
  remote.front = packet::VxlanFront({.local = tunnel.local,
                                     .remote = address,
                                     .source_mac = hop.source_mac,
                                     .next_hop_mac = hop.mac,
                                     .vni = tunnel.vni,
                                     .port = tunnel.udp_port,
                                     .ttl = tunnel.ttl,
                                     .inherit_ttl = tunnel.inherit_ttl,
                                     .dscp = tunnel.dscp,
                                     .inherit_dscp = tunnel.inherit_dscp,
                                     .dont_fragment = tunnel.dont_fragment,
                                     .udp_checksum = tunnel.udp_checksum});
  return remote;
}

}  // namespace

TunnelView::TunnelView(const Tunnel& tunnel, const std::map<packet::IpAddress, RemoteId>& ids,
                       const std::map<Ends, NextHop>& hops)
    : tunnel_(tunnel) {
  for (const packet::IpAddress& address : remotes_of(tunnel)) {
    const auto place = static_cast<std::uint16_t>(remotes_.size());
    const RemoteId id = ids.at(address);
    remotes_.push_back(make_remote(tunnel, address, id, hops.at({tunnel.local, address})));
    by_address_.emplace_back(address, place);
    if (place_of_.size() <= id) place_of_.resize(id + std::size_t{1}, none);
    place_of_[id] = place;
  }
  std::ranges::sort(by_address_);
  for (const auto& [mac, address] : tunnel.stations) stations_[mac] = place_of_[ids.at(address)];
}

const Remote* TunnelView::by_address(const std::uint8_t* address) const {
  const packet::IpAddress wanted = packet::IpAddress::from_bytes(tunnel_.local.family, address);
  const auto at =
      std::ranges::lower_bound(by_address_, wanted, {}, &std::pair<packet::IpAddress, std::uint16_t>::first);
  return at == by_address_.end() || at->first != wanted ? nullptr : &remotes_[at->second];
}

bool VxlanView::ends_here(const packet::VxlanView& outer) const {
  return std::ranges::any_of(tunnels, [&](const TunnelView& one) { return is_for(one.tunnel(), outer); });
}

bool VxlanView::is_local(const packet::VxlanView& outer) const {
  return std::ranges::any_of(tunnels, [&](const TunnelView& one) { return has_address(one.tunnel(), outer); });
}

const TunnelView* VxlanView::tunnel_for(const packet::VxlanView& outer) const {
  for (const TunnelView& one : tunnels) {
    if (one.tunnel().vni == outer.vni && is_for(one.tunnel(), outer)) return &one;
  }
  return nullptr;
}

}  // namespace sluice::function
