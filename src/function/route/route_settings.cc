#include "function/route/route_settings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace sluice::function {
namespace {

using RouterOptions = Router::RouterOptions;

// The text of a key that must be there; nothing where it has none, which is said already.
std::optional<std::string> given_text(Settings& settings, std::string_view key) {
  const std::string text = settings.required_text(key);
  return text.empty() && !settings.is(key, "") ? std::nullopt : std::optional(text);
}

std::optional<PortIndex> port_of(Settings& settings, const engine::PortTable& ports) {
  const auto name = given_text(settings, "port");
  const auto index = name ? ports.index(*name) : std::nullopt;
  if (name && !index) {
    settings.error("port", "there is no [[port]] named \"" + *name + "\"");
  }
  return index;
}

// `wrong`: why no such value makes sense there, or empty.
template <typename T>
std::optional<T> parsed(Settings& settings, std::string_view key, std::string (*wrong)(const T&)) {
  const auto text = given_text(settings, key);
  if (!text) {
    return std::nullopt;
  }
  const auto value = T::parse(*text);
  if (!value) {
    settings.error(key, value.error().message);
    return std::nullopt;
  }
  if (const std::string why = wrong(*value); !why.empty()) {
    settings.error(key, why);
  }
  return *value;
}

// The keys of a [[route.connected]] and of a [[route.neighbour]].
struct Link {
  const engine::PortTable* ports = nullptr;
  std::optional<packet::IpPrefix> prefix = {};
  std::optional<PortIndex> port = {};
  std::optional<packet::IpAddress> address = {};
  std::optional<packet::MacAddress> mac = {};
};

Option<Link> port_setting() {
  return Option<Link>{"port", "the link", [](Settings& section, Link& to) { to.port = port_of(section, *to.ports); },
                      [](const Link& of) { return option::literal(of.port ? (*of.ports)[*of.port].name : ""); }}
      .takes("name of a `[[port]]`")
      .by_default(option::required);
}

// A value that T::parse() takes.
template <class T>
Option<Link> parsed_setting(const char* key, std::optional<T> Link::*member, std::string (*wrong)(const T&),
                            std::string values, std::string text) {
  return Option<Link>{key, std::move(text),
                      [=](Settings& section, Link& to) { to.*member = parsed<T>(section, key, wrong); },
                      [=](const Link& of) { return option::literal(of.*member ? (of.*member)->str() : ""); }}
      .takes(std::move(values))
      .by_default(option::required);
}

const std::vector<Option<Link>>& connected_settings() {
  static const std::vector<Option<Link>> all =
      option::all_reloadable<Link>({parsed_setting<packet::IpPrefix>("prefix", &Link::prefix, &wrong_connected,
                                                                     "prefix", "next hops in it are behind the port"),
                                    port_setting()});
  return all;
}

const std::vector<Option<Link>>& neighbour_settings() {
  static const std::vector<Option<Link>> all = option::all_reloadable<Link>(
      {port_setting(),
       parsed_setting<packet::IpAddress>("address", &Link::address, &wrong_neighbour, "IPv4 or IPv6 address",
                                         "the neighbour's. Frames for it go there while it lies in a connected prefix "
                                         "of the port"),
       parsed_setting<packet::MacAddress>("mac", &Link::mac, &wrong_neighbour, "MAC address",
                                          "its link address, of one interface: not broadcast, multicast or zero")});
  return all;
}

std::vector<StaticNeighbour> read_neighbours(Settings& settings, const engine::PortTable& ports) {
  std::vector<StaticNeighbour> neighbours;
  std::map<std::pair<PortIndex, packet::IpAddress>, std::pair<packet::MacAddress, unsigned>> first;  // with its line
  for (Settings& entry : settings.sections("neighbour")) {
    Link link{&ports};
    option::read(neighbour_settings(), entry, link);
    if (link.port && link.address && link.mac) {
      const auto [known, is_new] = first.try_emplace({*link.port, *link.address}, *link.mac, entry.line("mac"));
      if (!is_new && known->second.first != *link.mac) {
        entry.error("mac", link.address->str() + " has another one on this port in line " +
                               std::to_string(known->second.second) + ", " + known->second.first.str() +
                               ": keep one, a neighbour has one MAC address");
      }
    }
    entry.finish();
    neighbours.push_back(
        {link.port.value_or(0), link.address.value_or(packet::IpAddress{}), link.mac.value_or(packet::MacAddress{})});
  }
  return neighbours;
}

std::vector<StaticConnected> read_connected(Settings& settings, const engine::PortTable& ports) {
  std::vector<StaticConnected> connected;
  for (Settings& entry : settings.sections("connected")) {
    Link link{&ports};
    option::read(connected_settings(), entry, link);
    if (link.prefix && std::ranges::find(connected, *link.prefix, &StaticConnected::prefix) != connected.end()) {
      entry.error("prefix", "another [[route.connected]] has it: give each prefix one link");
    }
    entry.finish();
    connected.push_back({link.port.value_or(0), link.prefix.value_or(packet::IpPrefix{})});
  }
  return connected;
}

}  // namespace

const std::vector<Option<RouterOptions>>& route_settings() {
  static const std::vector<Option<RouterOptions>> all = {
      option::number(
          "max_ipv4", &RouterOptions::max_ipv4, {1, 1 << 24, "routes"},
          "IPv4 routes that the table holds, those of the kernel and neighbours included; allocated at start"),
      option::number("max_ipv6", &RouterOptions::max_ipv6, {1, 1 << 22, "routes"}, "IPv6 routes, likewise"),
      option::text<RouterOptions>(
          "table", [](auto& all) -> auto& { return all.statics.table; },
          "a file of static routes, `prefix next_hop` on each line (what the kernel does not do for them: "
          "[control-plane.md](control-plane.md)), plain or packed by `xz`: a regular file of 1 GiB at most, as it is "
          "and unpacked. A line for a prefix that nothing is forwarded to (multicast, 127.0.0.0/8, 0.0.0.0, "
          "255.255.255.255, fe80::/10, ::, ::1) is refused")
          .takes("path")
          .reloadable(),
      option::flag("kernel", &RouterOptions::kernel, "mirror the kernel's routes and neighbours of the twins"),
      option::seconds("verify", &RouterOptions::verify, {0, 86400, "s"},
                      "time after which the mirror is compared with the kernel without an occasion; 0: never"),
      option::flag("any_mac", &RouterOptions::any_mac,
                   "route frames whatever their destination MAC address, as captures hold them")
          .reloadable(),
      option::word(
          "look_up", &RouterOptions::look_up,
          {{"auto", Router::LookUp::automatic}, {"device", Router::LookUp::device}, {"cores", Router::LookUp::cores}},
          "where there is a GPU: who looks up routes. `auto`: cores in a chain with `ipsec`, where a frame is "
          "routed twice, else the GPU")};
  return all;
}

std::vector<OptionSection> route_sections() {
  return {option::section("[route]", route_settings(), "IPv4 and IPv6 router."),
          option::section<Link>("[[route.connected]]", connected_settings(),
                                "A link without a twin, whose next hops leave by this port.", nullptr),
          option::section<Link>("[[route.neighbour]]", neighbour_settings(), "A neighbour that needs no resolution.",
                                nullptr)};
}

RouterOptions read_route(Settings& settings, const engine::PortTable& ports) {
  RouterOptions options;
  option::read(route_settings(), settings, options);
  options.statics.connected = read_connected(settings, ports);
  options.statics.neighbours = read_neighbours(settings, ports);
  return options;
}

}  // namespace sluice::function
