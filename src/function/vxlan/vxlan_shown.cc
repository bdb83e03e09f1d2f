// What the element shows of itself: its tunnels, and who is at their other ends.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "function/vxlan/vxlan.h"

namespace sluice::function {
namespace {

// For each tunnel; a view has some kilobytes.
constexpr std::size_t most_remotes_shown = 16;

nlohmann::ordered_json shown_remote(const VxlanControl::ShownRemote& remote, const engine::PortTable& ports) {
  nlohmann::ordered_json shown = {{"address", remote.address.str()}, {"resolved", remote.hop.resolved}};
  if (remote.hop.resolved) {
    shown["port"] = ports[remote.hop.port].name;
  } else if (!remote.hop.why.empty()) {
    shown["why"] = remote.hop.why;
  }
  return shown;
}

}  // namespace

std::vector<VxlanControl::ShownTunnel> VxlanControl::show() const {
  const std::lock_guard lock(changing_);
  std::vector<ShownTunnel> all;
  for (const Tunnel& tunnel : settings_.tunnels) {
    ShownTunnel& shown = all.emplace_back();
    shown.port = tunnel.port;
    shown.vni = tunnel.vni;
    shown.local = tunnel.local;
    shown.stations = fdbs_[tunnel.port]->size();
    for (const packet::IpAddress& remote : remotes_of(tunnel)) {
      shown.remotes.push_back({remote, followed_.at({tunnel.local, remote}).hop});
    }
  }
  return all;
}

std::string Vxlan::view() const {
  auto tunnels = nlohmann::ordered_json::array();
  for (VxlanControl::ShownTunnel& tunnel : control_ ? control_->show() : std::vector<VxlanControl::ShownTunnel>()) {
    // Those that something is wrong with first.
    std::stable_partition(tunnel.remotes.begin(), tunnel.remotes.end(),
                          [](const auto& remote) { return !remote.hop.resolved; });
    auto remotes = nlohmann::ordered_json::array();
    for (const auto& remote : tunnel.remotes) {
      if (remotes.size() < most_remotes_shown) remotes.push_back(shown_remote(remote, ports_));
    }
    nlohmann::ordered_json shown = {{"port", ports_[tunnel.port].name},
                                    {"vni", tunnel.vni},
                                    {"local", tunnel.local.str()},
                                    {"in_frames", sum_of(in_of_port_, &OfPort::frames, tunnel.port)},
                                    {"in_bytes", sum_of(in_of_port_, &OfPort::bytes, tunnel.port)},
                                    {"out_frames", sum_of(out_of_port_, &OfPort::frames, tunnel.port)},
                                    {"out_bytes", sum_of(out_of_port_, &OfPort::bytes, tunnel.port)},
                                    {"stations", tunnel.stations},
                                    {"remotes", std::move(remotes)}};
    if (tunnel.remotes.size() > most_remotes_shown) shown["more_remotes"] = tunnel.remotes.size() - most_remotes_shown;
    tunnels.push_back(std::move(shown));
  }
  nlohmann::ordered_json all;
  all["tunnels"] = std::move(tunnels);
  return all.dump();
}

}  // namespace sluice::function
