// Routes that the configuration file itself names: [[route.connected]], [[route.neighbour]] and the list in `table`.
// They give way to every route of the kernel for the same prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
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

// Why no neighbour has this address or MAC address, and why no link has this prefix: the same rules as for next hops in
// a file of routes, with what to give instead; empty: nothing is wrong.
std::string wrong_neighbour(const packet::IpAddress& address);
std::string wrong_neighbour(const packet::MacAddress& mac);
std::string wrong_connected(const packet::IpPrefix& prefix);
// Why no frame is ever forwarded by a route for this prefix (RFC 1812 section 5.3.7, RFC 4291 section 2): it holds only
// addresses that no router forwards to; empty: nothing is wrong.
std::string wrong_route(const packet::IpPrefix& prefix);

struct StaticOptions {
  std::string table;  // a file of lines "prefix gateway"; empty: none
  std::vector<StaticConnected> connected;
  std::vector<StaticNeighbour> neighbours;
};

// Called every thousand routes with how many of how many are done. False: stop.
using LoadProgress = std::function<bool(std::size_t done, std::size_t total)>;

class StaticRoutes {
 public:
  struct Hash {
    std::size_t operator()(const packet::IpPrefix& prefix) const { return hash_of(prefix); }
  };
  using Routes = std::unordered_map<packet::IpPrefix, NextHop, Hash>;

  // How many routes the tables are to hold.
  struct Capacity {
    std::uint32_t max_ipv4 = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t max_ipv6 = std::numeric_limits<std::uint32_t>::max();
  };
  // The routes that `options` name, with the file read as a whole, every line of it checked, and counted. Needs no
  // table. An Error has a line for each mistake, with file and line (lookup/route_file.h); of routes that are more than
  // there is capacity for, the first one; or `progress` said stop.
  static Expected<Routes> read(const StaticOptions& options, const Capacity& capacity,
                               const LoadProgress& progress = {});

  // Makes the table hold `routes` and the neighbours, and no longer what an earlier call said. Routes are added or
  // replaced first, then those that are gone are removed, so that forwarding goes on meanwhile; only when the table has
  // no capacity for both do those that are gone go first. An Error, which names the route that did not fit, leaves
  // everything as it was; only when `progress` says stop, the table stays as it is then, to be thrown away.
  Expected<void> apply(const Routes& routes, const std::vector<StaticNeighbour>& neighbours, RouteTable& table,
                       const LoadProgress& progress = {});
  std::size_t size() const { return routes_.size(); }

 private:
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

  using Neighbours = std::map<NeighbourKey, packet::MacAddress>;
  struct Watch;
  // Takes the step, in the table and here, and answers with the one that takes it back.
  Expected<Step> take(const Step& step, RouteTable& table);
  Expected<Step> take(const RouteStep& step, RouteTable& table);
  Expected<Step> take(const NeighbourStep& step, RouteTable& table);
  // What is there now and not among `routes` and `neighbours`.
  std::vector<Step> steps_away(const Routes& routes, const Neighbours& neighbours) const;
  Expected<void> change(const Routes& routes, const Neighbours& neighbours, RouteTable& table, Watch& watch,
                        std::vector<Step>& taken_back_by);

  Routes routes_;  // what the table holds of them at every moment
  Neighbours neighbours_;
};

}  // namespace sluice::function
