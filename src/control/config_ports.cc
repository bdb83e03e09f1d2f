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

port::PortOptions read_port(Settings& section) {
  port::PortOptions port;
  port.name = section.required_text("name");
  if (section.has("name") && !valid_name(port.name)) {
    section.error("name", "allowed are 1 to 15 of a-z, 0-9, _ and -");
  }
  port.device = section.required_text("device");
  check_device_setting(section, port.device);
  port.queues = static_cast<unsigned>(section.integer("queues", port.queues, 1, 64));
  port.lanes = static_cast<unsigned>(section.integer("lanes", port.queues, 1, 64));
  if (port.lanes < port.queues) {
    section.error("lanes", "allowed is " + std::to_string(port.queues) + ", one for each queue, or more");
  }
  port.mtu = static_cast<unsigned>(section.integer("mtu", port.mtu, 68, 9600));
  port.twin = section.text("twin", port.twin);
  if (!port.twin.empty() && !valid_interface(port.twin)) {
    section.error("twin",
                  "allowed is an interface name of 1 to 15 characters without spaces, / : and %, or \"\" for none");
  } else if (!port.twin.empty() && port::device_argument(port.device, "iface") == port.twin) {
    section.error("twin", "is the interface that the port itself uses: give the twin a name of its own");
  }
  port.peer = section.text("peer", port.peer);
  port.descriptors = static_cast<unsigned>(section.integer("descriptors", port.descriptors, 64, 32768));
  port.promiscuous = section.boolean("promiscuous", port.promiscuous);
  section.finish();
  return port;
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

void read_ports(Settings& root, std::vector<port::PortOptions>& ports) {
  std::vector<Settings> sections = root.sections("port");
  std::vector<std::string> names;
  for (Settings& section : sections) {
    ports.push_back(read_port(section));
    names.push_back(ports.back().name);
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
