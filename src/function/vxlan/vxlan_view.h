// What lanes know of tunnels and their remotes: a value that never changes, published anew when the configuration or
// the way to a remote does (base/published.h).
//
// Thread-safety: any thread. Cost of the look-ups: tunnel_for() one comparison for each tunnel, the others a hash or
// less.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "function/vxlan/fdb.h"
#include "function/vxlan/next_hops.h"
#include "function/vxlan/tunnels.h"
#include "packet/vxlan.h"

namespace sluice::function {

// Another end of a tunnel.
struct Remote {
  RemoteId id = no_remote;
  packet::IpAddress address;
  bool resolved = false;
  std::uint16_t port = 0;  // that its frames leave by
  std::uint32_t most = 0;  // bytes of an inner frame that fit into one of them
  packet::VxlanFront front;
};

// Of a tunnel and one of its remotes. The way between them depends on both: rules of the kernel choose by the source.
struct Ends {
  packet::IpAddress local, remote;
  auto operator<=>(const Ends&) const = default;
};

class TunnelView {
 public:
  // `ids` and `hops` have all of the tunnel's remotes.
  TunnelView(const Tunnel& tunnel, const std::map<packet::IpAddress, RemoteId>& ids,
             const std::map<Ends, NextHop>& hops);

  const Tunnel& tunnel() const { return tunnel_; }
  std::span<const Remote> remotes() const { return remotes_; }
  // To which go frames without a known place: the first ones.
  std::span<const Remote> flooded() const { return remotes().first(tunnel_.remotes.size()); }
  // Null: none of the tunnel's.
  const Remote* by_id(RemoteId id) const {
    return id < place_of_.size() && place_of_[id] != none ? &remotes_[place_of_[id]] : nullptr;
  }
  const Remote* by_address(const std::uint8_t* address) const;
  // Where the configuration says that the station is; null: nothing of it.
  const Remote* by_station(std::uint64_t mac) const {
    if (stations_.empty()) return nullptr;
    const auto at = stations_.find(mac);
    return at == stations_.end() ? nullptr : &remotes_[at->second];
  }

 private:
  static constexpr std::uint16_t none = 0xffff;
  Tunnel tunnel_;
  std::vector<Remote> remotes_;
  std::vector<std::uint16_t> place_of_;                                  // of each id
  std::vector<std::pair<packet::IpAddress, std::uint16_t>> by_address_;  // in order
  std::unordered_map<std::uint64_t, std::uint16_t> stations_;
};

struct VxlanView {
  std::vector<TunnelView> tunnels;
  std::vector<std::uint16_t> of_port;      // index of a port's tunnel; no_tunnel: it is no virtual port
  std::vector<std::uint64_t> source_macs;  // of each port, as packet::mac_word(): what frames for it are sent to

  static constexpr std::uint16_t no_tunnel = 0xffff;
  // Whether frames to this address and UDP port are tunnels' at all; to this address.
  bool ends_here(const packet::VxlanView& outer) const;
  bool is_local(const packet::VxlanView& outer) const;
  // By address, UDP port and VNI; null: none.
  const TunnelView* tunnel_for(const packet::VxlanView& outer) const;
};

}  // namespace sluice::function
