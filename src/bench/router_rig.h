// The router on a replay port with a full-size table, as several benches want it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/rig.h"
#include "lookup/route_file.h"
#include "packet/ip_address.h"

namespace sluice::cli::bench {

inline constexpr std::uint64_t router_memory = 6ULL << 30;

// Temporary files for one bench, gone with this object, or by remove_router_table() in a signal handler.
class RouterTable {
 public:
  struct Size {
    std::size_t ipv4 = 600'000, ipv6 = 200'000;
  };
  // The routes of options.table, none where it names no file: read before anything is started. Errors: a file that
  // cannot be read, with its lines; one without an IPv4 route to addresses that a router forwards.
  static Expected<lookup::RouteList> read(const BenchOptions& options);
  // Writes a table of so many made-up routes (or of `from_file`, which read() gave, with made-up IPv6 ones), and
  // destinations of both families that lie behind them. The router's settings have 254 gateways on the replay port, all
  // of them resolved neighbours, and default routes, so that every destination is forwarded.
  static Expected<std::unique_ptr<RouterTable>> make(lookup::RouteList from_file, Size size);
  static Expected<std::unique_ptr<RouterTable>> make(lookup::RouteList from_file = {}) {
    return make(std::move(from_file), Size{});
  }
  explicit RouterTable(std::string folder);
  ~RouterTable();
  RouterTable(const RouterTable&) = delete;
  RouterTable& operator=(const RouterTable&) = delete;

  // From now on frames go to these addresses, and those that no router forwards are left out of them. Before a rig.
  Expected<void> send_to(const std::vector<packet::IpAddress>& addresses) const;

  const std::string& settings() const { return settings_; }  // TOML of [route]
  // The same table for a rig of one port or two: each gateway is on port_of() and has mac_of(), and frames for any link
  // address are taken, because what leaves a port comes in again as it left.
  std::string settings_on_ports(unsigned ports) const;
  static std::string gateway(int family, unsigned g);  // g: 1 to 254, the address's last byte
  static std::uint16_t port_of(unsigned g, unsigned ports) { return g < 128 || ports == 1 ? 0 : 1; }
  static packet::MacAddress mac_of(unsigned g);
  std::string routes_path() const { return folder_ + "/routes"; }
  std::string destinations_path() const { return folder_ + "/destinations"; }

 private:
  std::string settings_with(const std::function<std::uint16_t(unsigned)>& port,
                            const std::function<packet::MacAddress(unsigned)>& mac) const;
  std::string folder_, sizes_, settings_;
};

void remove_router_table();

// Whether it forwards to and from this address: no loopback, link-local, multicast, or reserved one, and none of its
// own networks.
bool router_forwards(const packet::IpAddress& address);

RigOptions router_rig(const BenchOptions& options, const RouterTable& table, int family, engine::Mode mode,
                      const std::string& device);

}  // namespace sluice::cli::bench
