#include "function/route/static_routes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "lookup/route_file.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t static_metric = 1U << 31;  // every route of the kernel is better
constexpr std::uint32_t protocol_static = 4;       // RTPROT_STATIC

class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total) {}
  void tick(std::size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ >= std::chrono::seconds(2)) {
      last_ = now;
      spdlog::info("routes: {} of {} loaded", done, total_);
    }
  }

 private:
  std::size_t total_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

Expected<StaticRoutes::Routes> StaticRoutes::read(const StaticOptions& options) {
  Routes routes;
  for (const StaticConnected& connected : options.connected) {
    routes[connected.prefix] = {connected.port, {}, 1};
  }
  if (options.table.empty()) {
    return routes;
  }
  auto list = lookup::read_routes(options.table);
  if (!list) {
    return tl::unexpected(list.error());
  }
  std::vector<packet::IpAddress> gateways(1);
  for (std::size_t i = 1; i < list->next_hops.size(); ++i) {
    auto gateway = packet::IpAddress::parse(list->next_hops[i]);
    if (!gateway) {
      return make_error(options.table + ": next hop " + gateway.error().message + "; each line is \"prefix gateway\"");
    }
    gateways.push_back(*gateway);
  }
  routes.reserve(list->routes.size());
  for (const lookup::RouteLine& line : list->routes) {
    if (line.next_hop == lookup::no_route) {
      return make_error(options.table + ": " + line.prefix.str() + " has no gateway; each line is \"prefix gateway\"");
    }
    routes[line.prefix] = {AdjacencyTable::any_port, gateways[line.next_hop], 1};
  }
  return routes;
}

Expected<void> StaticRoutes::apply(const StaticOptions& options, RouteTable& table) {
  auto routes = read(options);
  if (!routes) {
    return tl::unexpected(routes.error());
  }
  Progress progress(routes->size());
  std::size_t done = 0;
  for (const auto& [prefix, hop] : *routes) {
    if (const auto old = routes_.find(prefix); old == routes_.end() || !(old->second == hop)) {
      if (auto added = table.add_route({prefix, RouteKind::unicast, {hop}, static_metric, protocol_static}); !added) {
        return added;
      }
    }
    progress.tick(++done);
  }
  for (const auto& [prefix, hop] : routes_) {
    if (!routes->contains(prefix)) {
      if (auto removed = table.remove_route(prefix, static_metric); !removed) {
        return removed;
      }
    }
  }
  routes_ = std::move(*routes);
  for (const StaticNeighbour& neighbour : options.neighbours) {
    if (auto added = table.add_neighbour(neighbour.port, neighbour.address, neighbour.mac); !added) {
      return added;
    }
  }
  for (const StaticNeighbour& old : neighbours_) {
    const bool stays =
        std::any_of(options.neighbours.begin(), options.neighbours.end(), [&](const StaticNeighbour& neighbour) {
          return neighbour.port == old.port && neighbour.address == old.address;
        });
    if (!stays) {
      if (auto removed = table.remove_neighbour(old.port, old.address); !removed) {
        return removed;
      }
    }
  }
  neighbours_ = options.neighbours;
  return {};
}

}  // namespace sluice::function
