// A control plane for tests and benches: keeps what is announced to it and counts the calls.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "function/control_plane.h"

namespace sluice::control::netlink {

class RecordingPlane : public function::ControlPlane {
 public:
  Expected<void> add_route(const function::Route& route) override {
    ++route_calls;
    if (routes.size() >= route_limit) return make_error("the route table is full");
    routes[{route.prefix, route.metric}] = route;
    return {};
  }
  Expected<void> remove_route(const packet::IpPrefix& prefix, std::uint32_t metric) override {
    ++route_calls;
    if (routes.erase({prefix, metric}) == 0) return make_error("no route " + prefix.str());
    return {};
  }
  Expected<void> add_neighbour(function::PortIndex port, const packet::IpAddress& address,
                               const packet::MacAddress& mac) override {
    neighbours[{port, address}] = mac.str();
    if (refuse_neighbours) return make_error("the route table is full");
    return {};
  }
  Expected<void> remove_neighbour(function::PortIndex port, const packet::IpAddress& address) override {
    if (neighbours.erase({port, address}) == 0) return make_error("no neighbour " + address.str());
    return {};
  }
  void set_link(function::PortIndex port, bool up, std::uint32_t mtu) override { links[port] = {up, mtu}; }
  void set_source(std::optional<function::PortIndex> port, int family, const packet::IpAddress& address) override {
    sources[{port, family}] = address.empty() ? "none" : address.str();
  }

  void set_ingress(function::PortIndex port, const function::PortIngress& one) override { ingress[port] = one; }

  // "unicast 0 via 10.0.0.2, 1 *3" for the best route of exactly this prefix; "none".
  std::string route(const std::string& prefix) const {
    const auto wanted = packet::IpPrefix::parse(prefix).value();
    const auto found = routes.lower_bound({wanted, 0});
    if (found == routes.end() || found->first.first != wanted) return "none";
    static const char* const kinds[] = {"unicast", "local", "blackhole", "unreachable"};
    std::string text = kinds[static_cast<int>(found->second.kind)];
    const char* separator = " ";
    for (const auto& hop : found->second.next_hops) {
      text += separator + std::to_string(hop.port);
      if (!hop.gateway.empty()) text += " via " + hop.gateway.str();
      if (hop.weight != 1) text += " *" + std::to_string(hop.weight);
      separator = ", ";
    }
    return text;
  }
  std::string neighbour(function::PortIndex port, const std::string& address) const {
    const auto found = neighbours.find({port, packet::IpAddress::parse(address).value()});
    return found == neighbours.end() ? "none" : found->second;
  }

  std::map<std::pair<packet::IpPrefix, std::uint32_t>, function::Route> routes;
  std::map<std::pair<function::PortIndex, packet::IpAddress>, std::string> neighbours;
  std::map<function::PortIndex, std::pair<bool, std::uint32_t>> links;
  std::map<std::pair<std::optional<function::PortIndex>, int>, std::string> sources;
  std::map<function::PortIndex, function::PortIngress> ingress;
  std::size_t route_calls = 0;
  std::size_t route_limit = SIZE_MAX;
  bool refuse_neighbours = false;
};

}  // namespace sluice::control::netlink
