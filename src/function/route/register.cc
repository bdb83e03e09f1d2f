// The router's entry in the list of functions: reads [route].
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/function.h"
#include "function/route/route.h"

namespace sluice::function {
namespace {

std::optional<PortIndex> port_of(Settings& settings, const engine::PortTable& ports) {
  const std::string name = settings.required_text("port");
  const auto index = ports.index(name);
  if (!index) {
    settings.error("port", "there is no [[port]] named \"" + name + "\"");
  }
  return index;
}

std::vector<StaticNeighbour> read_neighbours(Settings& settings, const engine::PortTable& ports) {
  std::vector<StaticNeighbour> neighbours;
  std::map<std::pair<PortIndex, packet::IpAddress>, std::pair<packet::MacAddress, unsigned>> first;  // with its line
  for (Settings& entry : settings.sections("neighbour")) {
    const auto port = port_of(entry, ports);
    auto address = packet::IpAddress::parse(entry.required_text("address"));
    if (!address) {
      entry.error("address", address.error().message);
    } else if (const std::string wrong = wrong_neighbour(*address); !wrong.empty()) {
      entry.error("address", wrong);
    }
    auto mac = packet::MacAddress::parse(entry.required_text("mac"));
    if (!mac) {
      entry.error("mac", mac.error().message);
    } else if (const std::string wrong = wrong_neighbour(*mac); !wrong.empty()) {
      entry.error("mac", wrong);
    }
    if (port && address && mac) {
      const auto [known, is_new] = first.try_emplace({*port, *address}, *mac, entry.line("mac"));
      if (!is_new && known->second.first != *mac) {
        entry.error("mac", address->str() + " has another one on this port in line " +
                               std::to_string(known->second.second) + ", " + known->second.first.str() +
                               ": keep one, a neighbour has one MAC address");
      }
    }
    entry.finish();
    neighbours.push_back({port.value_or(0), address.value_or(packet::IpAddress{}), mac.value_or(packet::MacAddress{})});
  }
  return neighbours;
}

Expected<std::unique_ptr<engine::Function>> make_router(Settings& settings, const engine::PortTable& ports) {
  Router::RouterOptions options;
  options.max_ipv4 = static_cast<std::uint32_t>(settings.integer("max_ipv4", options.max_ipv4, 1, 1 << 24));
  options.max_ipv6 = static_cast<std::uint32_t>(settings.integer("max_ipv6", options.max_ipv6, 1, 1 << 22));
  options.statics.table = settings.text("table", "");
  options.kernel = settings.boolean("kernel", true);
  options.any_mac = settings.boolean("any_mac", false);

  for (Settings& entry : settings.sections("connected")) {
    auto prefix = packet::IpPrefix::parse(entry.required_text("prefix"));
    if (!prefix) {
      entry.error("prefix", prefix.error().message);
    } else if (const std::string wrong = wrong_connected(*prefix); !wrong.empty()) {
      entry.error("prefix", wrong);
    }
    const auto port = port_of(entry, ports);
    if (prefix && std::ranges::find(options.statics.connected, *prefix, &StaticConnected::prefix) !=
                      options.statics.connected.end()) {
      entry.error("prefix", "another [[route.connected]] has it: give each prefix one link");
    }
    entry.finish();
    options.statics.connected.push_back({port.value_or(0), prefix.value_or(packet::IpPrefix{})});
  }
  options.statics.neighbours = read_neighbours(settings, ports);
  return std::make_unique<Router>(std::move(options), ports);
}

const bool registered = engine::register_function({"route", "IPv4 and IPv6 router", make_router});

}  // namespace
}  // namespace sluice::function
