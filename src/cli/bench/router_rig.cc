#include "cli/bench/router_rig.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <fstream>

#include "lookup/route_file.h"

namespace sluice::cli::bench {
namespace {
constexpr std::size_t routes4 = 600'000;
constexpr std::size_t routes6 = 200'000;
constexpr unsigned gateways = 254;
}  // namespace

Expected<std::string> write_settings(const BenchOptions& options, const std::string& table_path) {
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
  std::ofstream file(table_path);
  std::size_t count4 = 0;
  for (const lookup::RouteLine& line : list.routes) {
    const unsigned gateway = 1 + line.next_hop % gateways;
    count4 += line.prefix.address.family == 4;
    file << line.prefix.str() << (line.prefix.address.family == 4 ? " 198.19.0." : " 2001:2:0:19::") << gateway << "\n";
  }
  if (!file.flush()) {
    return make_error("cannot write " + table_path);
  }
  std::printf(
      "routes: %zu IPv4 and %zu IPv6%s\n", count4, list.routes.size() - count4,
      options.table.empty() ? ", made up with the Internet's spread of lengths" : (" from " + options.table).c_str());
  std::string text = fmt::format("kernel = false\ntable = \"{}\"\n", table_path);
  text += "[[connected]]\nprefix = \"198.19.0.0/24\"\nport = \"replay\"\n";
  text += "[[connected]]\nprefix = \"2001:2:0:19::/64\"\nport = \"replay\"\n";
  // The gateways have the port's own address, because what leaves the port comes in again.
  const std::string mac = port::ReplayPort::mac_of("replay").str();
  for (unsigned g = 1; g <= gateways; ++g) {
    for (const char* prefix : {"198.19.0.", "2001:2:0:19::"}) {
      text += fmt::format("[[neighbour]]\nport = \"replay\"\naddress = \"{}{}\"\nmac = \"{}\"\n", prefix, g, mac);
    }
  }
  // So that a random destination is always forwarded, whatever the table holds.
  file << "0.0.0.0/0 198.19.0.1\n::/0 2001:2:0:19::1\n";
  return text;
}

RigOptions router_rig(const BenchOptions& options, const std::string& settings, int family, engine::Mode mode,
                      const std::string& device) {
  RigOptions rig;
  rig.function = "route";
  rig.settings = settings;
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
