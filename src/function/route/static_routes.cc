#include "function/route/static_routes.h"

#include <spdlog/spdlog.h>

#include <chrono>

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

Expected<StaticRoutes::Step> StaticRoutes::take(const RouteStep& step, RouteTable& table) {
  const auto known = routes_.find(step.prefix);
  const RouteStep back{step.prefix, known == routes_.end() ? std::nullopt : std::optional(known->second)};
  const Expected<void> done =
      step.hop ? table.add_route({step.prefix, RouteKind::unicast, {*step.hop}, static_metric, protocol_static})
               : table.remove_route(step.prefix, static_metric);
  if (!done) {
    return tl::unexpected(done.error());
  }
  if (step.hop) {
    routes_[step.prefix] = *step.hop;
  } else {
    routes_.erase(step.prefix);
  }
  return back;
}

Expected<StaticRoutes::Step> StaticRoutes::take(const NeighbourStep& step, RouteTable& table) {
  const auto known = neighbours_.find(step.key);
  const NeighbourStep back{step.key, known == neighbours_.end() ? std::nullopt : std::optional(known->second)};
  if (step.mac) {
    if (auto added = table.add_neighbour(step.key.first, step.key.second, *step.mac); !added) {
      // What was there before is there again; a new one leaves nothing behind.
      if (back.mac) {
        (void)table.add_neighbour(step.key.first, step.key.second, *back.mac);
      } else {
        (void)table.remove_neighbour(step.key.first, step.key.second);
      }
      return tl::unexpected(added.error());
    }
    neighbours_[step.key] = *step.mac;
  } else {
    // That it is gone already is no error: the kernel may have known it too, and have given it up.
    (void)table.remove_neighbour(step.key.first, step.key.second);
    neighbours_.erase(step.key);
  }
  return back;
}

Expected<StaticRoutes::Step> StaticRoutes::take(const Step& step, RouteTable& table) {
  return std::visit([&](const auto& one) { return take(one, table); }, step);
}

Expected<void> StaticRoutes::change(const Routes& routes, const StaticOptions& options, RouteTable& table,
                                    std::vector<Step>& taken_back_by) {
  std::map<NeighbourKey, packet::MacAddress> neighbours;
  for (const StaticNeighbour& neighbour : options.neighbours) {
    neighbours[{neighbour.port, neighbour.address}] = neighbour.mac;
  }
  std::vector<Step> gone;
  for (const auto& [prefix, hop] : routes_) {
    if (!routes.contains(prefix)) {
      gone.push_back(RouteStep{prefix, std::nullopt});
    }
  }
  for (const auto& [key, mac] : neighbours_) {
    if (!neighbours.contains(key)) {
      gone.push_back(NeighbourStep{key, std::nullopt});
    }
  }
  const auto go = [&](const Step& step) -> Expected<void> {
    auto back = take(step, table);
    if (!back) {
      return tl::unexpected(back.error());
    }
    taken_back_by.push_back(std::move(*back));
    return {};
  };
  const auto remove_gone = [&]() -> Expected<void> {
    Expected<void> done;
    for (; done && !gone.empty(); gone.pop_back()) {
      done = go(gone.back());
    }
    return done;
  };
  const auto put = [&](const Step& step) -> Expected<void> {
    Expected<void> done = go(step);
    if (done || gone.empty()) {
      return done;
    }
    done = remove_gone();
    return done ? go(step) : done;
  };
  Progress progress(routes.size());
  std::size_t count = 0;
  Expected<void> done;
  for (const auto& [prefix, hop] : routes) {
    if (const auto known = routes_.find(prefix); known == routes_.end() || !(known->second == hop)) {
      done = put(RouteStep{prefix, hop});
    }
    if (!done) {
      return done;
    }
    progress.tick(++count);
  }
  for (const auto& [key, mac] : neighbours) {
    if (done = put(NeighbourStep{key, mac}); !done) {
      return done;
    }
  }
  return remove_gone();
}

Expected<void> StaticRoutes::apply(const StaticOptions& options, RouteTable& table) {
  auto routes = read(options);
  if (!routes) {
    return tl::unexpected(routes.error());
  }
  std::vector<Step> taken_back_by;
  Expected<void> changed = change(*routes, options, table, taken_back_by);
  if (changed) {
    return {};
  }
  std::size_t lost = 0;
  for (auto step = taken_back_by.rbegin(); step != taken_back_by.rend(); ++step) {
    lost += take(*step, table) ? 0 : 1;
  }
  if (lost != 0) {
    return make_error(changed.error().message + "; and " + std::to_string(lost) +
                      " of the former routes and neighbours found their place taken: make room, and reload the former "
                      "file");
  }
  return changed;
}

}  // namespace sluice::function
