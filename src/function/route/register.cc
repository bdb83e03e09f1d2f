// The router's entry in the list of elements: reads [route].
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/answers.h"
#include "engine/element.h"
#include "engine/section_files.h"
#include "engine/traits.h"
#include "function/route/answered_reasons.h"
#include "function/route/route.h"

namespace sluice::function {
namespace {

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

std::vector<StaticNeighbour> read_neighbours(Settings& settings, const engine::PortTable& ports) {
  std::vector<StaticNeighbour> neighbours;
  std::map<std::pair<PortIndex, packet::IpAddress>, std::pair<packet::MacAddress, unsigned>> first;  // with its line
  for (Settings& entry : settings.sections("neighbour")) {
    const auto port = port_of(entry, ports);
    const auto address = parsed<packet::IpAddress>(entry, "address", &wrong_neighbour);
    const auto mac = parsed<packet::MacAddress>(entry, "mac", &wrong_neighbour);
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

Expected<std::unique_ptr<engine::Element>> make_router(Settings& settings, const engine::PortTable& ports) {
  Router::RouterOptions options;
  options.max_ipv4 = static_cast<std::uint32_t>(settings.integer("max_ipv4", options.max_ipv4, 1, 1 << 24));
  options.max_ipv6 = static_cast<std::uint32_t>(settings.integer("max_ipv6", options.max_ipv6, 1, 1 << 22));
  options.statics.table = settings.text("table", "");
  options.kernel = settings.boolean("kernel", true);
  options.verify = std::chrono::seconds(settings.integer("verify", options.verify.count(), 0, 86400));
  options.any_mac = settings.boolean("any_mac", false);

  for (Settings& entry : settings.sections("connected")) {
    const auto prefix = parsed<packet::IpPrefix>(entry, "prefix", &wrong_connected);
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

class Type final : public engine::SectionFiles, public engine::Answers {
 public:
  std::vector<Read> reads(Settings& section) const override {
    return {{section.text("table", ""), "the file of [route] table"}};
  }
  std::vector<packet::Reason> answered() const override { return {ttl_expired, too_big}; }
};

void* find_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::SectionFiles, engine::Answers>(name, &type);
}

const bool registered = engine::register_element({.name = "route",
                                                  .text = "IPv4 and IPv6 router",
                                                  .make = make_router,
                                                  .ends_chain = true,
                                                  .usual = true,
                                                  .find_trait = find_type_trait});

}  // namespace
}  // namespace sluice::function
