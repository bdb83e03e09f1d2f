// The ports of a gateway as an element sees them: indices, names, peers. Constant after start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packet/ip_address.h"

namespace sluice::engine {

struct PortInfo {
  std::string name;
  packet::MacAddress mac;
  std::uint32_t mtu = 1500;
  std::uint16_t peer = 0;
  bool has_twin = false;
  std::uint32_t lanes = 1;
  std::string twin = {};    // name of the twin's interface, if has_twin
  bool is_virtual = false;  // the element `device` makes its frames and takes them over (port::is_virtual())
  std::string device = {};  // as configured
  bool names_peer = false;  // the configuration says `peer`; else it is the other of two ports, or the port itself
  std::vector<packet::IpAddress> addresses = {};  // as configured, of its twin
};

class PortTable {
 public:
  explicit PortTable(std::vector<PortInfo> ports = {}) : ports_(std::move(ports)) {}
  std::size_t size() const { return ports_.size(); }
  const PortInfo& operator[](std::size_t index) const { return ports_[index]; }
  std::uint16_t peer(std::uint16_t port) const { return ports_[port].peer; }
  std::optional<std::uint16_t> index(std::string_view name) const {
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (ports_[i].name == name) {
        return static_cast<std::uint16_t>(i);
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<PortInfo> ports_;
};

}  // namespace sluice::engine
