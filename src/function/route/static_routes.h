// Routes that the configuration file itself names: [[route.connected]], [[route.neighbour]] and the list in `table`.
// They give way to every route of the kernel for the same prefix.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "function/route/route_table.h"

namespace sluice::function {

struct StaticConnected {
  PortIndex port;
  packet::IpPrefix prefix;
};

struct StaticNeighbour {
  PortIndex port;
  packet::IpAddress address;
  packet::MacAddress mac;
};

struct StaticOptions {
  std::string table;  // a file of lines "prefix gateway"; empty: none
  std::vector<StaticConnected> connected;
  std::vector<StaticNeighbour> neighbours;
};

class StaticRoutes {
 public:
  // Makes the table hold what `options` say, and no longer what an earlier call said: routes are added or replaced
  // first, then those that are gone are removed, so that forwarding goes on meanwhile. Reading and checking come before
  // any change. Logs progress every two seconds. Errors name file and line, or the route that did not fit.
  Expected<void> apply(const StaticOptions& options, RouteTable& table);
  std::size_t size() const { return routes_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const packet::IpPrefix& prefix) const { return hash_of(prefix); }
  };
  using Routes = std::unordered_map<packet::IpPrefix, NextHop, Hash>;
  static Expected<Routes> read(const StaticOptions& options);

  Routes routes_;
  std::vector<StaticNeighbour> neighbours_;
};

}  // namespace sluice::function
