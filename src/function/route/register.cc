// The router's entry in the list of functions: reads [route].
#include <algorithm>

#include "engine/function.h"
#include "function/route/route.h"

namespace sluice::function {
namespace {

PortIndex port_of(Settings& settings, const engine::PortTable& ports) {
  const std::string name = settings.required_text("port");
  const auto index = ports.index(name);
  if (!index) {
    settings.error("port", "there is no [[port]] named \"" + name + "\"");
  }
  return index.value_or(0);
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
    const PortIndex port = port_of(entry, ports);
    if (prefix && std::ranges::find(options.statics.connected, *prefix, &StaticConnected::prefix) !=
                      options.statics.connected.end()) {
      entry.error("prefix", "another [[route.connected]] has it: give each prefix one link");
    }
    entry.finish();
    options.statics.connected.push_back({port, prefix.value_or(packet::IpPrefix{})});
  }
  for (Settings& entry : settings.sections("neighbour")) {
    const PortIndex port = port_of(entry, ports);
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
    entry.finish();
    options.statics.neighbours.push_back(
        {port, address.value_or(packet::IpAddress{}), mac.value_or(packet::MacAddress{})});
  }
  return std::make_unique<Router>(std::move(options), ports);
}

const bool registered = engine::register_function({"route", "IPv4 and IPv6 router", make_router});

}  // namespace
}  // namespace sluice::function
