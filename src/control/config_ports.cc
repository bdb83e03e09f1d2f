#include <algorithm>
#include <regex>

#include "base/spelling.h"
#include "control/config_sections.h"
#include "engine/counters.h"
#include "port/virtual_device.h"

namespace sluice::control {
namespace {

constexpr std::size_t longest_interface_name = 15;  // IFNAMSIZ - 1

bool valid_name(const std::string& name) {
  static const std::regex pattern("[a-z0-9_-]{1,15}");
  return std::regex_match(name, pattern);
}

// As the kernel's dev_valid_name().
bool valid_interface(const std::string& name) {
  return !name.empty() && name.size() <= longest_interface_name && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return c <= ' ' || c == '/' || c == ':' || c == '%' || c > '~'; });
}

// Why an interface cannot have it; empty: it can.
std::string why_not_address(const port::InterfaceAddress& address) {
  const packet::IpAddress& host = address.address;
  const unsigned bits = host.bits();
  const packet::IpPrefix network = packet::IpPrefix::of(host, address.length);
  const auto is_in = [&](const char* prefix) { return packet::IpPrefix::parse(prefix)->contains(host); };
  if (address.length == 0) return "the prefix is that of all addresses";
  if (is_in(host.family == 4 ? "127.0.0.0/8" : "::1/128")) return "is a loopback address";
  if (is_in(host.family == 4 ? "224.0.0.0/4" : "ff00::/8")) return "is no host's";
  if (is_in(host.family == 4 ? "0.0.0.0/32" : "::/128")) return "is no host's";
  if (host.family == 4 && is_in("255.255.255.255/32")) return "is no host's";
  if (host.family == 4 && address.length < bits - 1) {
    const std::uint32_t broadcast = network.address.v4_host_order() | (0xFFFFFFFFU >> address.length);
    if (host == network.address) return "is the network itself, no host in it";
    if (host.v4_host_order() == broadcast) return "is the broadcast address of its network";
  }
  return {};
}

// "10.1.0.1/24": unlike a prefix's, its host bits are set.
Expected<port::InterfaceAddress> read_address(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto address = packet::IpAddress::parse(text.substr(0, slash));
  if (!address) return make_error(address.error().message);
  if (slash == std::string::npos) {
    return make_error("has no length: write \"" + text + (address->family == 4 ? "/24" : "/64") + "\", or what it is");
  }
  const auto network = packet::IpPrefix::parse((address->family == 4 ? "0.0.0.0" : "::") + text.substr(slash));
  if (!network) return make_error("allowed is a length from 1 to " + std::to_string(address->bits()));
  const port::InterfaceAddress result{*address, network->length};
  if (const std::string why = why_not_address(result); !why.empty()) return make_error(why);
  return result;
}

void read_addresses(Settings& section, port::PortOptions& port) {
  for (const std::string& text : section.texts("address")) {
    const auto address = read_address(text);
    if (!address) {
      section.error("address", "\"" + text + "\": " + address.error().message);
    } else if (std::ranges::find(port.addresses, *address) != port.addresses.end()) {
      section.error("address", "\"" + text + "\" is there twice");
    } else {
      port.addresses.push_back(*address);
    }
  }
}

// What the host's side of a port is to be, besides its name.
void check_twin(Settings& section, const port::PortOptions& port) {
  for (const char* key : {"address", "persistent", "unnumbered"}) {
    if (port.twin.empty() && section.has(key))
      section.error(key, "is about a twin: name one, such as twin = \"sl-lan\"");
  }
  if (port.unnumbered && !port.addresses.empty()) section.error("unnumbered", "and there is an address: leave one out");
  constexpr unsigned least_of_ipv6 = 1280;  // RFC 8200 section 5
  const auto is_ipv6 = [](const port::InterfaceAddress& address) { return address.address.family == 6; };
  if (port.mtu < least_of_ipv6 && std::ranges::any_of(port.addresses, is_ipv6)) {
    section.error("mtu", "IPv6 needs 1280 or more, and there is an IPv6 address: leave one out");
  }
}

void read_name(Settings& section, port::PortOptions& port) {
  port.name = section.required_text("name");
  if (section.has("name") && !valid_name(port.name)) {
    section.error("name", "allowed are 1 to 15 of a-z, 0-9, _ and -");
  }
}

void read_device(Settings& section, port::PortOptions& port) {
  port.device = section.required_text("device");
  check_device_setting(section, port.device);
}

void read_lanes(Settings& section, port::PortOptions& port) {
  port.lanes = static_cast<unsigned>(section.integer("lanes", port.queues, 1, 64));
  if (port.lanes < port.queues) {
    section.error("lanes", "allowed is " + std::to_string(port.queues) + ", one for each queue, or more");
  }
}

void read_twin_name(Settings& section, port::PortOptions& port) {
  port.twin = section.text("twin", port.twin);
  if (!port.twin.empty() && !valid_interface(port.twin)) {
    section.error("twin",
                  "allowed is an interface name of 1 to 15 characters without spaces, / : and %, or \"\" for none");
  } else if (!port.twin.empty() && port::device_argument(port.device, "iface") == port.twin) {
    section.error("twin", "is the interface that the port itself uses: give the twin a name of its own");
  }
}

std::string shown_addresses(const port::PortOptions& port) {
  std::vector<std::string> addresses;
  for (const port::InterfaceAddress& address : port.addresses) addresses.push_back(address.str());
  return option::list_literal(addresses);
}

// Bytes of the outer headers of the tunnel under the port: of the addresses in the section that its device is called
// by.
unsigned outer_headers(Settings& root, const port::PortOptions& port) {
  constexpr unsigned over_ipv4 = 50, over_ipv6 = 70;
  for (Settings& tunnel : root.section(port.device).sections("tunnel")) {
    const bool is_its = tunnel.has("port") && tunnel.text("port", "") == port.name;
    if (is_its && tunnel.has("local")) {
      return tunnel.text("local", "").find(':') == std::string::npos ? over_ipv4 : over_ipv6;
    }
  }
  return over_ipv4;
}

// What is different for a port that an element makes the frames of. Needs all ports read.
void finish_virtual(Settings& root, Settings& section, const std::vector<port::PortOptions>& all,
                    port::PortOptions& port) {
  for (const char* const key : {"queues", "lanes"}) {
    const unsigned value = std::string_view(key) == "queues" ? port.queues : port.lanes;
    if (value != 1 && section.has(key))
      section.error(key, "allowed is 1: nothing is received from a device \"" + port.device + "\"");
  }
  if (section.has("mtu")) return;
  unsigned widest = 0;
  for (const port::PortOptions& other : all) {
    if (!port::is_virtual(other.device)) widest = std::max(widest, other.mtu);
  }
  constexpr unsigned least = 68;  // RFC 791
  port.mtu = std::max(std::max(widest, least) - std::min(outer_headers(root, port), widest), least);
}

// Which earlier port says the same.
template <typename Key>
const port::PortOptions* same(const std::vector<port::PortOptions>& ports, std::size_t i, Key key) {
  const auto end = ports.begin() + static_cast<std::ptrdiff_t>(i);
  const auto it = std::find_if(ports.begin(), end, [&](const port::PortOptions& other) {
    return !key(other).empty() && key(other) == key(ports[i]);
  });
  return it == end ? nullptr : &*it;
}

}  // namespace

const std::vector<Option<port::PortOptions>>& port_settings() {
  using port::PortOptions;
  static const std::vector<Option<PortOptions>> all = {
      Option<PortOptions>{"name", "unique", read_name, [](const PortOptions& of) { return option::literal(of.name); }}
          .takes("1 to 15 of `a-z`, `0-9`, `_`, `-`")
          .by_default(option::required),
      Option<PortOptions>{"device", "what is under the port: [devices](#devices)", read_device,
                          [](const PortOptions& of) { return option::literal(of.device); }}
          .takes("a PCI address (`\"0000:3b:00.0\"`), a DPDK virtual device with its arguments, or `\"replay,...\"`")
          .by_default(option::required),
      option::number("queues", &PortOptions::queues, {1, 64, "queues"}, "receive queues"),
      Option<PortOptions>{"lanes",
                          "lanes that share the queues' frames by a symmetric flow hash; more than `queues` where a "
                          "driver has only one "
                          "queue. Each queue has the `frames` of `[memory]` once for each lane that shares it",
                          read_lanes, [](const PortOptions& of) { return std::to_string(of.lane_count()); }}
          .takes("`queues` to 64")
          .by_default("`queues`"),
      option::number("mtu", &PortOptions::mtu, {68, 9600, "bytes"},
                     "largest IP packet; of a tunnel's port by default that of the other ports less the "
                     "outer headers"),
      Option<PortOptions>{
          "twin", "TAP interface that carries what is not fast-path to and from the host's kernel; `\"\"`: none",
          read_twin_name, [](const PortOptions& of) { return option::literal(of.twin); }}
          .takes("name of an interface"),
      Option<PortOptions>{
          "address",
          "addresses that the twin gets at the start and [by a reload](production.md#addresses-on-twins), such as "
          "`[\"10.1.0.1/24\", \"2001:db8:1::1/64\"]`. `check` and the log warn of one subnet on two ports",
          read_addresses, shown_addresses, true}
          .takes("list of addresses, each with its prefix's length"),
      option::flag(
          "persistent", &PortOptions::persistent,
          "the twin stays when Sluice ends, with what is on it, and without a carrier; the next start takes it again"),
      option::flag("unnumbered", &PortOptions::unnumbered,
                   "a router's twin is to have no address: that is then no [ailment](monitoring.md#what-is-looked-at)"),
      option::text("peer", &PortOptions::peer,
                   "port that functions send to which do not look at addresses, as a bridge does")
          .takes("name of a `[[port]]`")
          .by_default("the other of two ports, else the port itself"),
      option::number("descriptors", &PortOptions::descriptors, {64, 32768}, "per queue and direction"),
      option::flag("promiscuous", &PortOptions::promiscuous, "receive frames for any MAC address")};
  return all;
}

void read_ports(Settings& root, std::vector<port::PortOptions>& ports) {
  std::vector<Settings> sections = root.sections("port");
  std::vector<std::string> names;
  for (Settings& section : sections) {
    option::read(port_settings(), section, ports.emplace_back());
    check_twin(section, ports.back());
    section.finish();
    names.push_back(ports.back().name);
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (port::is_virtual(ports[i].device)) finish_virtual(root, sections[i], ports, ports[i]);
  }
  if (ports.empty() && !root.has("port"))
    root.error("", "there is no port: add at least one [[port]] with a name and a device");
  if (ports.size() > engine::max_ports) {
    sections[engine::max_ports].error("", "more than " + std::to_string(engine::max_ports) + " ports");
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Settings& section = sections[i];
    const auto where = [&](const port::PortOptions& other) {
      return "the same as in line " +
             std::to_string(sections[static_cast<std::size_t>(&other - ports.data())].line("")) + ": ";
    };
    if (const auto* other = same(ports, i, [](const auto& p) { return p.name; })) {
      section.error("name", where(*other) + "names of ports are unique");
    }
    for (const port::InterfaceAddress& address : ports[i].addresses) {
      const auto has_it = [&](const port::PortOptions& other) {
        return std::ranges::any_of(other.addresses, [&](const auto& own) { return own.address == address.address; });
      };
      const auto end = ports.begin() + static_cast<std::ptrdiff_t>(i);
      if (const auto other = std::find_if(ports.begin(), end, has_it); other != end) {
        section.error("address", where(*other) + address.address.str() + " is one port's");
      }
    }
    if (const auto* other = same(ports, i, [](const auto& p) { return p.twin; })) {
      section.error("twin", where(*other) + "each port has a twin of its own");
    }
    const std::string& peer = ports[i].peer;
    if (!peer.empty() && std::find(names.begin(), names.end(), peer) == names.end()) {
      section.error("peer", "there is no such port" + spelling_hint(peer, names));
    }
  }
  check_devices_apart(sections, ports);
}

}  // namespace sluice::control
