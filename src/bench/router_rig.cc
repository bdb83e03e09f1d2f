#include "bench/router_rig.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "bench/progress.h"
#include "lookup/route_file.h"

namespace sluice::cli::bench {
namespace {
constexpr unsigned gateways = 254;
constexpr std::size_t most_destinations = 1 << 20;  // of both families

// For the signal handler: paths without a destructor.
struct Paths {
  char folder[64], routes[96], destinations[96];
};
Paths there{};

// What a router forwards: no loopback, link-local, multicast, or address that is reserved.
bool unicast(const packet::IpAddress& address) {
  const std::uint8_t first = address.bytes[0];
  const bool link_local = first == 169 && address.bytes[1] == 254;
  return address.family == 4 ? first >= 1 && first <= 223 && first != 127 && !link_local : (first & 0xe0) == 0x20;
}

// Whether a router forwards to addresses behind the prefix.
bool leads_to_unicast(const packet::IpPrefix& prefix) {
  // Behind a shorter one there are others than its first.
  return prefix.length < 8 ? prefix.address.bytes[0] < 224 : unicast(prefix.address);
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

// Two for each route, to routes drawn by chance; where chance has left out a family that there are few routes of, one
// for each of those.
void write_destinations(const lookup::RouteList& list, std::ostream& out) {
  std::mt19937_64 random(7);
  const std::size_t wanted = std::min(most_destinations, 2 * list.routes.size());
  std::size_t count4 = 0;
  for (std::size_t count = 0; count < wanted;) {
    const packet::IpAddress address = inside(list.routes[random() % list.routes.size()].prefix, random);
    if (unicast(address)) {
      out << address.str() << "\n";
      count4 += address.family == 4;
      ++count;
    }
  }
  for (const lookup::RouteLine& line : list.routes) {
    if (count4 == 0 && line.prefix.address.family == 4 && leads_to_unicast(line.prefix)) {
      packet::IpAddress address = line.prefix.address;
      while (!unicast(address)) {
        address = inside(line.prefix, random);
      }
      out << address.str() << "\n";
    }
  }
}
}  // namespace

bool router_forwards(const packet::IpAddress& address) {
  const bool own = address.family == 4 && address.bytes[0] == 198 && (address.bytes[1] & 0xfe) == 18;
  return unicast(address) && !own;
}

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

Expected<lookup::RouteList> RouterTable::read(const BenchOptions& options) {
  if (options.table.empty()) {
    return lookup::RouteList();
  }
  const Progress progress("reading " + options.table);
  auto read = lookup::read_routes(options.table);
  if (!read) {
    return tl::unexpected(read.error());
  }
  const auto usable = [](const lookup::RouteLine& line) {
    return line.prefix.address.family == 4 && leads_to_unicast(line.prefix);
  };
  if (!std::ranges::any_of(read->routes, usable)) {
    return make_error("--table " + options.table +
                      (read->routes.empty() ? ": has no routes" : ": no IPv4 route of it leads to unicast addresses") +
                      ": write one on each line, such as 192.0.2.0/24");
  }
  return read;
}

Expected<std::unique_ptr<RouterTable>> RouterTable::make(lookup::RouteList from_file, Size size) {
  const Progress progress("making routes and destinations");
  const bool made_up = from_file.routes.empty();
  lookup::RouteList list = made_up ? lookup::make_routes(size.ipv4, size.ipv6, 1) : std::move(from_file);
  if (!made_up) {
    const lookup::RouteList ipv6 = lookup::make_routes(0, size.ipv6, 1);
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
    routes << line.prefix.str() << ' ' << RouterTable::gateway(line.prefix.address.family, gateway) << "\n";
  }
  routes << "0.0.0.0/0 " << RouterTable::gateway(4, 1) << "\n::/0 " << RouterTable::gateway(6, 1) << "\n";
  std::ofstream destinations(table->destinations_path());
  write_destinations(list, destinations);
  if (!routes.flush() || !destinations.flush()) {
    return make_error("cannot write " + table->routes_path() + " and " + table->destinations_path());
  }
  std::printf(
      "routes: %zu IPv4 and %zu IPv6, %s with the Internet's spread of lengths; destinations drawn from all of them\n",
      count4, list.routes.size() - count4,
      made_up ? "made up" : fmt::format("of the file, but for {} IPv6 ones that are made up", size.ipv6).c_str());
  // As many as the defaults of [route] for a table of full size.
  table->sizes_ = fmt::format("max_ipv4 = {}\nmax_ipv6 = {}\n", std::max<std::size_t>(20'000, count4 / 3 * 5),
                              std::max<std::size_t>(20'000, (list.routes.size() - count4) / 2 * 3));
  // The gateways have the port's own address, because what leaves the port comes in again.
  table->settings_ = table->settings_with([](unsigned) { return std::uint16_t{0}; },
                                          [](unsigned) { return port::ReplayPort::mac_of("replay"); });
  return table;
}

Expected<void> RouterTable::send_to(const std::vector<packet::IpAddress>& addresses) const {
  std::ofstream destinations(destinations_path());
  for (const packet::IpAddress& address : addresses) {
    if (unicast(address)) {
      destinations << address.str() << "\n";
    }
  }
  return destinations.flush() ? Expected<void>{} : make_error("cannot write " + destinations_path());
}

std::string RouterTable::gateway(int family, unsigned g) {
  return family == 4 ? fmt::format("198.19.0.{}", g) : fmt::format("2001:2:0:19::{:x}", g);
}

packet::MacAddress RouterTable::mac_of(unsigned g) {
  return {{0x02, 0x19, 0, 0, 0, static_cast<std::uint8_t>(g)}};
}

std::string RouterTable::settings_on_ports(unsigned ports) const {
  return "any_mac = true\n" + settings_with([ports](unsigned g) { return port_of(g, ports); }, mac_of);
}

std::string RouterTable::settings_with(const std::function<std::uint16_t(unsigned)>& port,
                                       const std::function<packet::MacAddress(unsigned)>& mac) const {
  constexpr const char* names[] = {"replay", "replay2"};
  std::string text = fmt::format("kernel = false\ntable = \"{}\"\n{}", routes_path(), sizes_);
  for (const unsigned half : {0U, 128U}) {
    for (const std::string& prefix :
         {fmt::format("198.19.0.{}/25", half), fmt::format("2001:2:0:19::{:x}/121", half)}) {
      text += fmt::format("[[connected]]\nprefix = \"{}\"\nport = \"{}\"\n", prefix, names[port(half)]);
    }
  }
  for (unsigned g = 1; g <= gateways; ++g) {
    for (const int family : {4, 6}) {
      text += fmt::format("[[neighbour]]\nport = \"{}\"\naddress = \"{}\"\nmac = \"{}\"\n", names[port(g)],
                          gateway(family, g), mac(g).str());
    }
  }
  return text;
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
  rig.engine.cycle = std::chrono::microseconds(40);  // short: what is under way fits into a core's second cache
  rig.engine.batch = 8192;
  rig.engine.batches = 6;
  rig.engine.mode = mode;
  rig.engine.admission = engine::Admit::all;  // what is late is to be seen
  apply(options, rig.engine);
  rig.engine.device = device;
  rig.engine.cpu_below = device == "cpu" ? -1 : 0;
  return rig;
}

}  // namespace sluice::cli::bench
