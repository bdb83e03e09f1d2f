#include "function/route/static_routes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "lookup/line_mistakes.h"
#include "lookup/route_file.h"
#include "lookup/table_need.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t protocol_static = 4;  // RTPROT_STATIC

constexpr std::size_t routes_between_looks = 1024;

// Why no router has this address on a link (RFC 1122 section 3.2.1.3, RFC 1812 section 5.3.7, RFC 4291 section 2);
// empty: one may.
std::string_view no_router_has(const packet::IpAddress& address) {
  const std::uint8_t first = address.bytes[0];
  if (address.family == 4) {
    return address.v4_host_order() == 0             ? "is the unspecified address"
           : first == 127                           ? "is a loopback address"
           : first >> 4 == 0xe                      ? "is a multicast address"
           : address.v4_host_order() == 0xffffffffU ? "is the broadcast address"
                                                    : "";
  }
  constexpr std::array<std::uint8_t, 16> zeros{};
  const bool zero15 = std::equal(zeros.begin(), zeros.begin() + 15, address.bytes.begin());
  return first == 0xff                      ? "is a multicast address"
         : zero15 && address.bytes[15] == 0 ? "is the unspecified address"
         : zero15 && address.bytes[15] == 1 ? "is the loopback address"
                                            : "";
}

// Multicast, which broadcast is a case of, and no address at all are no host's (IEEE 802-2014 section 8.2).
std::string_view no_host_has(const packet::MacAddress& mac) {
  if (mac == packet::MacAddress{}) {
    return "is no address";
  }
  constexpr packet::MacAddress broadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  return mac == broadcast ? "is the broadcast address" : (mac.bytes[0] & 1) != 0 ? "is a multicast address" : "";
}

// Empty: the prefix has addresses that are forwarded to.
std::string never_forwarded(const packet::IpPrefix& prefix) {
  // Of such a range a prefix holds nothing else, but for those that begin with the unspecified address.
  const bool wide = prefix.address.bytes[0] == 0 && prefix.length < (prefix.address.family == 4 ? 32 : 127);
  const std::string_view why = no_router_has(prefix.address);
  return why.empty() || wide ? "" : "begins with " + prefix.address.str() + ", which " + std::string(why);
}

bool is_ipv6_link_local(const packet::IpAddress& address) {
  return address.family == 6 && address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

// `family`: of the prefix. IPv4 by an IPv6 next hop is RFC 8950's; nothing carries IPv6 by an IPv4 one.
std::string wrong_gateway(std::string_view text, int family, const std::vector<StaticConnected>& links) {
  if (text.empty()) {
    return "has no gateway; each line is \"prefix gateway\"";
  }
  const auto gateway = packet::IpAddress::parse(text);
  if (!gateway) {
    return "next hop " + gateway.error().message + "; each line is \"prefix gateway\"";
  }
  const std::string next_hop = "next hop " + gateway->str() + " ";
  if (const std::string_view why = no_router_has(*gateway); !why.empty()) {
    return next_hop + std::string(why) + ": give the address that the next router has on its link";
  }
  if (family == 6 && gateway->family == 4) {
    return next_hop + "is IPv4 and the prefix is IPv6: give the next router's IPv6 address";
  }
  if (is_ipv6_link_local(*gateway) &&
      std::ranges::none_of(links, [&](const auto& link) { return link.prefix.contains(*gateway); })) {
    return next_hop +
           "is a link-local address and no [[route.connected]] prefix says on which link: give a global address";
  }
  return {};
}

// A file that cannot be read is the fault of the setting that names it; a mistake in it has a line of its own.
std::string place_of(const std::string& table, const std::string& message) {
  const std::string_view rest = std::string_view(message).substr(std::min(message.size(), table.size() + 1));
  const bool has_line = message.starts_with(table + ":") && !rest.empty() && std::isdigit(rest.front()) != 0;
  return has_line ? message : "[route] table: " + message;
}

// Counts routes as they are read, and remembers the first of each family that there is no capacity for.
class CapacityCount {
 public:
  explicit CapacityCount(const StaticRoutes::Capacity& capacity) : capacity_(capacity) {}

  // `place`: what to call it, made only when asked for.
  template <typename Place>
  void add(const packet::IpPrefix& prefix, const Place& place) {
    const int family = prefix.address.family;
    need_.add(prefix);
    if (std::string& first = first_[family == 6]; first.empty() && !need_.fits(family, capacity(family))) {
      first = place() + prefix.str();
    }
  }

  Expected<void> result() const {
    std::string lines;
    for (const int family : {4, 6}) {
      if (!first_[family == 6].empty()) {
        lines += (lines.empty() ? "" : "\n") + refusal(family);
      }
    }
    return lines.empty() ? Expected<void>() : make_error(lines);
  }

 private:
  std::uint32_t capacity(int family) const { return family == 4 ? capacity_.max_ipv4 : capacity_.max_ipv6; }
  std::string refusal(int family) const {
    const std::string key = family == 4 ? "max_ipv4" : "max_ipv6";
    const std::string version = family == 4 ? "IPv4" : "IPv6";
    const bool too_many = need_.routes(family) > capacity(family);
    return "[route] " + key + " = " + std::to_string(capacity(family)) + ": there are " +
           std::to_string(need_.routes(family)) + " " + version + " routes" +
           (too_many ? ""
                     : ", which need " + std::to_string(need_.groups(family)) +
                           " groups for prefixes longer than /24, and there are " +
                           std::to_string(lookup::Fib::default_groups(family, capacity(family)))) +
           "; the first that does not fit is " + first_[family == 6] + ": set " + key + " = " +
           std::to_string(need_.max_routes(family)) + " or more";
  }

  StaticRoutes::Capacity capacity_;
  lookup::TableNeed need_;
  std::string first_[2];
};

// The place where the prefix of `line` has `hop` already.
std::string said_before(const lookup::RouteList& list, const lookup::RouteLine& line, const NextHop& hop) {
  if (hop.gateway.empty()) {
    return line.prefix.str() + " is a [[route.connected]] prefix too: keep one of the two";
  }
  const auto first = std::ranges::find(list.routes, line.prefix, &lookup::RouteLine::prefix);
  return line.prefix.str() + " has another next hop in line " + std::to_string(first->line) + ", " +
         list.next_hops[first->next_hop] + ": keep one, a prefix has one next hop here";
}

}  // namespace

std::string wrong_neighbour(const packet::IpAddress& address) {
  const std::string_view why = no_router_has(address);
  return why.empty() ? "" : std::string(why) + ": give the address that the neighbour has on its link";
}

std::string wrong_neighbour(const packet::MacAddress& mac) {
  const std::string_view why = no_host_has(mac);
  return why.empty() ? "" : std::string(why) + ": give the one of the neighbour's interface";
}

std::string wrong_connected(const packet::IpPrefix& prefix) {
  const std::string why = never_forwarded(prefix);
  return why.empty() ? "" : why + ": give the prefix of a link";
}

std::string wrong_route(const packet::IpPrefix& prefix) {
  std::string why = never_forwarded(prefix);
  // Not 169.254.0.0/16, of which tables of the Internet have parts.
  if (why.empty() && prefix.length >= 10 && is_ipv6_link_local(prefix.address)) {
    why = "begins with " + prefix.address.str() + ", which is a link-local address";
  }
  return why.empty() ? "" : prefix.str() + " " + why + ": nothing is forwarded there, leave the line out";
}

// Asks now and then whether to go on, and remembers that the answer was no.
struct StaticRoutes::Watch {
  const LoadProgress& progress;
  std::size_t total;
  std::size_t done = 0;
  bool stopped = false;

  bool goes_on() {
    if (progress && done++ % routes_between_looks == 0) {
      stopped = !progress(std::min(done - 1, total), total);
    }
    return !stopped;
  }
};

Expected<StaticRoutes::Routes> StaticRoutes::read(const StaticOptions& options, const Capacity& capacity,
                                                  const LoadProgress& progress) {
  Routes routes;
  CapacityCount count(capacity);
  for (const StaticConnected& connected : options.connected) {
    if (routes.insert_or_assign(connected.prefix, NextHop{connected.port, {}, 1}).second) {
      count.add(connected.prefix, [] { return std::string("[[route.connected]] "); });
    }
  }
  if (options.table.empty()) {
    return count.result().map([&] { return std::move(routes); });
  }
  auto list = lookup::read_routes(
      options.table, [&](std::string_view hop, int family) { return wrong_gateway(hop, family, options.connected); },
      [&](std::size_t lines) { return !progress || progress(lines, 0); });
  if (!list) {
    return make_error(place_of(options.table, list.error().message));
  }
  std::vector<packet::IpAddress> gateways(1);
  for (std::size_t i = 1; i < list->next_hops.size(); ++i) {
    gateways.push_back(*packet::IpAddress::parse(list->next_hops[i]));
  }
  routes.reserve(list->routes.size());
  lookup::LineMistakes mistakes(options.table);
  for (const lookup::RouteLine& line : list->routes) {
    if (progress && routes.size() % routes_between_looks == 0 && !progress(list->routes.size(), 0)) {
      return make_error("interrupted while routes were read");
    }
    if (const std::string wrong = wrong_route(line.prefix); !wrong.empty()) {
      mistakes.add(line.line, wrong);
      continue;
    }
    const NextHop hop{AdjacencyTable::any_port, gateways[line.next_hop], 1};
    const auto [known, is_new] = routes.try_emplace(line.prefix, hop);
    if (is_new) {
      count.add(line.prefix, [&] { return options.table + ":" + std::to_string(line.line) + ": "; });
    } else if (!(known->second == hop)) {
      mistakes.add(line.line, mistakes.says_next() ? said_before(*list, line, known->second) : std::string());
    }
  }
  if (auto fine = mistakes.result(); !fine) {
    return tl::unexpected(fine.error());
  }
  return count.result().map([&] { return std::move(routes); });
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

std::vector<StaticRoutes::Step> StaticRoutes::steps_away(const Routes& routes, const Neighbours& neighbours) const {
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
  return gone;
}

Expected<void> StaticRoutes::change(const Routes& routes, const Neighbours& neighbours, RouteTable& table, Watch& watch,
                                    std::vector<Step>& taken_back_by) {
  std::vector<Step> gone = steps_away(routes, neighbours);
  watch.total = routes.size() + gone.size();
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
    for (; done && !gone.empty() && watch.goes_on(); gone.pop_back()) {
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
    return done && !watch.stopped ? go(step) : done;
  };
  Expected<void> done;
  for (const auto& [prefix, hop] : routes) {
    if (const auto known = routes_.find(prefix); known == routes_.end() || !(known->second == hop)) {
      done = put(RouteStep{prefix, hop});
    }
    if (!done || !watch.goes_on()) {
      return done;
    }
  }
  for (const auto& [key, mac] : neighbours) {
    if (done = put(NeighbourStep{key, mac}); !done) {
      return done;
    }
  }
  return remove_gone();
}

Expected<void> StaticRoutes::apply(const Routes& routes, const std::vector<StaticNeighbour>& neighbours,
                                   RouteTable& table, const LoadProgress& progress) {
  Neighbours by_key;
  for (const StaticNeighbour& neighbour : neighbours) {
    by_key[{neighbour.port, neighbour.address}] = neighbour.mac;
  }
  Watch watch{progress, 0};
  std::vector<Step> taken_back_by;
  Expected<void> changed = change(routes, by_key, table, watch, taken_back_by);
  if (watch.stopped) {
    return make_error("interrupted while routes were loaded");
  }
  if (changed) {
    return {};
  }
  std::size_t lost = 0;
  for (auto step = taken_back_by.rbegin(); step != taken_back_by.rend(); ++step) {
    lost += take(*step, table) ? 0 : 1;
  }
  if (lost != 0) {
    return make_error(
        changed.error().message + "; and " + std::to_string(lost) +
        " of the former routes and neighbours found their place taken: free some capacity, and reload the former "
        "file");
  }
  return changed;
}

}  // namespace sluice::function
