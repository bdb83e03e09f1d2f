#include "cli/bench/router_rig.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "lookup/route_file.h"

namespace sluice::cli::bench {
namespace {
constexpr std::size_t routes4 = 600'000;
constexpr std::size_t routes6 = 200'000;
constexpr unsigned gateways = 254;
constexpr std::size_t destinations_of_both = 1 << 20;

// For the signal handler: paths without a destructor.
struct Paths {
  char folder[64], routes[96], destinations[96];
};
Paths there{};

// What a router forwards: no loopback, multicast, or address that is reserved.
bool unicast(const packet::IpAddress& address) {
  const std::uint8_t first = address.bytes[0];
  return address.family == 4 ? first >= 1 && first <= 223 && first != 127 : (first & 0xe0) == 0x20;
}

// A random address behind the prefix.
packet::IpAddress inside(const packet::IpPrefix& prefix, std::mt19937_64& random) {
  packet::IpAddress address = prefix.address;
  for (unsigned bit = prefix.length; bit < address.bits(); ++bit) {
    if ((random() & 1) != 0) {
      address.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80 >> bit % 8);
    }
  }
  return address;
}
}  // namespace

RouterTable::RouterTable(std::string folder) : folder_(std::move(folder)) {
  std::snprintf(there.routes, sizeof there.routes, "%s", routes_path().c_str());
  std::snprintf(there.destinations, sizeof there.destinations, "%s", destinations_path().c_str());
  std::snprintf(there.folder, sizeof there.folder, "%s", folder_.c_str());
}

RouterTable::~RouterTable() {
  remove_router_table();
}

void remove_router_table() {
  unlink(there.routes);
  unlink(there.destinations);
  rmdir(there.folder);
}

Expected<std::unique_ptr<RouterTable>> RouterTable::make(const BenchOptions& options) {
  lookup::RouteList list;
  if (options.table.empty()) {
    list = lookup::make_routes(routes4, routes6, 1);
  } else {
    auto read = lookup::read_routes(options.table);
    if (!read) {
      return tl::unexpected(read.error());
    }
    list = std::move(*read);
    const lookup::RouteList ipv6 = lookup::make_routes(0, routes6, 1);
    list.routes.insert(list.routes.end(), ipv6.routes.begin(), ipv6.routes.end());
  }
  char folder[] = "/tmp/sluice-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    return make_error("cannot make a folder in /tmp for the table");
  }
  auto table = std::make_unique<RouterTable>(folder);
  std::ofstream routes(table->routes_path());
  std::size_t count4 = 0;
  for (const lookup::RouteLine& line : list.routes) {
    const unsigned gateway = 1 + line.next_hop % gateways;
    count4 += line.prefix.address.family == 4;
    routes << line.prefix.str() << (line.prefix.address.family == 4 ? " 198.19.0." : " 2001:2:0:19::") << gateway
           << "\n";
  }
  routes << "0.0.0.0/0 198.19.0.1\n::/0 2001:2:0:19::1\n";
  std::ofstream destinations(table->destinations_path());
  std::mt19937_64 random(7);
  for (std::size_t count = 0; count < destinations_of_both;) {
    const packet::IpAddress address = inside(list.routes[random() % list.routes.size()].prefix, random);
    if (unicast(address)) {
      destinations << address.str() << "\n";
      ++count;
    }
  }
  if (!routes.flush() || !destinations.flush()) {
    return make_error("cannot write " + table->routes_path() + " and " + table->destinations_path());
  }
  std::printf(
      "routes: %zu IPv4 and %zu IPv6%s; destinations drawn from all of them\n", count4, list.routes.size() - count4,
      options.table.empty() ? ", made up with the Internet's spread of lengths" : (" from " + options.table).c_str());
  std::string& text = table->settings_;
  text = fmt::format("kernel = false\ntable = \"{}\"\n", table->routes_path());
  text += "[[connected]]\nprefix = \"198.19.0.0/24\"\nport = \"replay\"\n";
  text += "[[connected]]\nprefix = \"2001:2:0:19::/64\"\nport = \"replay\"\n";
  // The gateways have the port's own address, because what leaves the port comes in again.
  const std::string mac = port::ReplayPort::mac_of("replay").str();
  for (unsigned g = 1; g <= gateways; ++g) {
    for (const char* prefix : {"198.19.0.", "2001:2:0:19::"}) {
      text += fmt::format("[[neighbour]]\nport = \"replay\"\naddress = \"{}{}\"\nmac = \"{}\"\n", prefix, g, mac);
    }
  }
  return table;
}

RigOptions router_rig(const BenchOptions& options, const RouterTable& table, int family, engine::Mode mode,
                      const std::string& device) {
  RigOptions rig;
  rig.function = "route";
  rig.settings = table.settings();
  rig.destinations = table.destinations_path();
  rig.mix = options.mix.empty() ? "64" : options.mix;
  rig.family = family;
  rig.refresh = 200;
  rig.lanes = default_lanes(options);
  rig.frames = options.frames != 0 ? options.frames : 16384;
  rig.engine.deadline = std::chrono::milliseconds(1);
  rig.engine.batch = 8192;
  rig.engine.batches = 6;
  rig.engine.mode = mode;
  apply(options, rig.engine);
  rig.engine.device = device;
  rig.engine.cpu_below = device == "cpu" ? -1 : 0;
  return rig;
}

}  // namespace sluice::cli::bench
