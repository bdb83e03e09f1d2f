// Routes that the configuration file itself names: [[route.connected]], [[route.neighbour]] and the list in `table`.
// They give way to every route of the kernel for the same prefix.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
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
  // Makes the table hold what `options` say, and no longer what an earlier call said. Routes are added or replaced
  // first, then those that are gone are removed, so that forwarding goes on meanwhile; only when the table has no room
  // for both do those that are gone go first. Reading and checking come before any change. Logs progress every two
  // seconds. An Error, which names file and line, or the route that did not fit, leaves everything as it was.
  Expected<void> apply(const StaticOptions& options, RouteTable& table);
  std::size_t size() const { return routes_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const packet::IpPrefix& prefix) const { return hash_of(prefix); }
  };
  using Routes = std::unordered_map<packet::IpPrefix, NextHop, Hash>;
  using NeighbourKey = std::pair<PortIndex, packet::IpAddress>;
  // What a route or a neighbour shall be from now on; nothing: gone.
  struct RouteStep {
    packet::IpPrefix prefix;
    std::optional<NextHop> hop;
  };
  struct NeighbourStep {
    NeighbourKey key;
    std::optional<packet::MacAddress> mac;
  };
  using Step = std::variant<RouteStep, NeighbourStep>;

  static Expected<Routes> read(const StaticOptions& options);
  // Takes the step, in the table and here, and answers with the one that takes it back.
  Expected<Step> take(const Step& step, RouteTable& table);
  Expected<Step> take(const RouteStep& step, RouteTable& table);
  Expected<Step> take(const NeighbourStep& step, RouteTable& table);
  Expected<void> change(const Routes& routes, const StaticOptions& options, RouteTable& table,
                        std::vector<Step>& taken_back_by);

  Routes routes_;  // what the table holds of them at every moment
  std::map<NeighbourKey, packet::MacAddress> neighbours_;
};

}  // namespace sluice::function
