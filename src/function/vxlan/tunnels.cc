#include "function/vxlan/tunnels.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "function/vxlan/remote_ids.h"

namespace sluice::function {
namespace {

using packet::IpAddress;
using DontFragment = packet::VxlanFront::DontFragment;

constexpr std::uint32_t most_remotes = 1024;

// Why it is no tunnel's end; empty: it can be.
std::string why_no_end(const IpAddress& address) {
  const auto is_in = [&](const char* prefix) { return packet::IpPrefix::parse(prefix)->contains(address); };
  if (address.family == 4 ? is_in("224.0.0.0/4") : is_in("ff00::/8")) {
    return "is a group: Sluice sends a copy to each of `remotes` instead";
  }
  if (address.family == 4 ? is_in("0.0.0.0/8") || is_in("127.0.0.0/8") || is_in("240.0.0.0/4")
                          : is_in("::/128") || is_in("::1/128") || is_in("::ffff:0:0/96")) {
    return "is no address that another host could send to";
  }
  if (address.family == 6 && is_in("fe80::/10"))
    return "is link-local: give both ends a global or unique local address";
  return {};
}

std::optional<IpAddress> read_end(Settings& section, std::string_view key, const std::string& text) {
  const auto address = IpAddress::parse(text);
  const std::string quoted = "\"" + text + "\" ";
  if (!address) {
    section.error(key, address.error().message);
    return std::nullopt;
  }
  if (const std::string why = why_no_end(*address); !why.empty()) {
    section.error(key, quoted + why);
    return std::nullopt;
  }
  return *address;
}

// Whether there are any, right or wrong.
bool read_remotes(Settings& section, Tunnel& tunnel) {
  const std::vector<std::string> texts = section.texts("remotes");
  if (texts.size() > most_remotes) {
    section.error("remotes", "more than " + std::to_string(most_remotes));
    return true;
  }
  for (const std::string& text : texts) {
    const auto remote = read_end(section, "remotes", text);
    if (!remote) continue;
    if (!tunnel.local.empty() && remote->family != tunnel.local.family) {
      section.error("remotes", "\"" + text + "\" and local = \"" + tunnel.local.str() +
                                   "\" are of different families: a tunnel is over IPv4 or over IPv6");
    } else if (*remote == tunnel.local) {
      section.error("remotes", "\"" + text + "\" is the tunnel's own address, `local`");
    } else if (std::ranges::find(tunnel.remotes, *remote) != tunnel.remotes.end()) {
      section.error("remotes", "\"" + text + "\" is there twice");
    } else {
      tunnel.remotes.push_back(*remote);
    }
  }
  return !texts.empty();
}

struct Station {
  std::string mac, remote;
};

const std::vector<Option<Station>>& station_settings() {
  const auto required = [](const char* key, std::string Station::*member, std::string text) {
    return Option<Station>{key, std::move(text),
                           [=](Settings& section, Station& to) { to.*member = section.required_text(key); },
                           [=](const Station& of) { return option::literal(of.*member); }}
        .by_default(option::required);
  };
  static const std::vector<Option<Station>> all = option::all_reloadable<Station>(
      {required("mac", &Station::mac, "the station's link address").takes("MAC address"),
       required("remote", &Station::remote, "the remote that it is behind, one of `remotes` or another")
           .takes("IPv4 or IPv6 address")});
  return all;
}

void read_stations(Settings& section, Tunnel& tunnel) {
  for (Settings& entry : section.sections("fdb")) {
    Station station;
    option::read(station_settings(), entry, station);
    entry.finish();
    if (station.mac.empty() || station.remote.empty()) continue;
    const auto mac = packet::MacAddress::parse(station.mac);
    const auto remote = read_end(entry, "remote", station.remote);
    if (!mac) {
      entry.error("mac", mac.error().message);
    } else if ((mac->bytes[0] & 1) != 0 || mac->word() == 0) {
      entry.error("mac", "is no station's: what is for a group goes to all of `remotes`");
    } else if (remote && !tunnel.local.empty() && remote->family != tunnel.local.family) {
      entry.error("remote", "is of another family than local = \"" + tunnel.local.str() + "\"");
    } else if (remote && !tunnel.stations.emplace(mac->word(), *remote).second) {
      entry.error("mac", "is there twice");
    }
  }
}

// Whether frames of the port's MTU fit into those of any port that they could leave by.
void check_mtu(Settings& section, const Tunnel& tunnel, const engine::PortTable& ports) {
  std::uint32_t widest = 0;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    if (!ports[p].is_virtual) widest = std::max(widest, ports[p].mtu);
  }
  const std::uint32_t overhead = packet::vxlan_overhead(tunnel.local.family);
  if (ports[tunnel.port].mtu + overhead <= widest) return;
  section.error("port", "its mtu is " + std::to_string(ports[tunnel.port].mtu) + ", with " + std::to_string(overhead) +
                            " bytes of outer headers more than any port carries: set mtu = " +
                            std::to_string(widest > overhead ? widest - overhead : 0) + " there, or raise a port's");
}

// Outer frames would leave by the tunnel that they are to be put into.
void check_local(Settings& section, const Tunnel& tunnel, const engine::PortInfo& port) {
  if (std::ranges::find(port.addresses, tunnel.local) == port.addresses.end()) return;
  section.error("local", "is the address of the tunnel's own port \"" + port.name +
                             "\", inside of it: write the address of the port that its outer frames leave by");
}

// What is read of a [[vxlan.tunnel]].
struct Reading {
  const engine::PortTable& ports;
  Tunnel tunnel = {};
  std::optional<std::uint16_t> port = {};
  bool names_remotes = false;
};

void read_port(Settings& section, Reading& to) {
  const std::string name = section.required_text("port");
  to.port = to.ports.index(name);
  if (!name.empty() && !to.port) {
    section.error("port", "there is no [[port]] named \"" + name + "\"");
  } else if (to.port && !is_tunnel_port(to.ports[*to.port])) {
    section.error("port", "is no end of a tunnel: a port of its own, with device = \"vxlan\", is");
  }
  to.tunnel.port = to.port.value_or(0);
}

void read_vni(Settings& section, Reading& to) {
  if (!section.has("vni"))
    section.error("vni", "is missing: the network's number, 1 to 16777215, as the remotes have it");
  to.tunnel.vni = static_cast<std::uint32_t>(section.integer("vni", 1, 0, packet::most_vni));
}

void read_local(Settings& section, Reading& to) {
  if (const std::string local = section.required_text("local"); !local.empty()) {
    to.tunnel.local = read_end(section, "local", local).value_or(IpAddress{});
  }
}

std::string shown_remotes(const Reading& of) {
  std::vector<std::string> texts;
  for (const IpAddress& remote : of.tunnel.remotes) texts.push_back(remote.str());
  return option::list_literal(texts);
}

// A number of the outer header, or the inner packet's.
Option<Reading> inherited(const char* key, std::uint8_t Tunnel::*number, bool Tunnel::*inherits, option::Range range,
                          std::string text) {
  return {key,
          std::move(text),
          [=](Settings& section, Reading& to) {
            Tunnel& tunnel = to.tunnel;
            tunnel.*inherits = section.is(key, "inherit");
            if (tunnel.*inherits) return;
            tunnel.*number = static_cast<std::uint8_t>(section.integer(key, tunnel.*number, range.least, range.most));
          },
          [=](const Reading& of) {
            return of.tunnel.*inherits ? option::literal("inherit") : std::to_string(of.tunnel.*number);
          },
          false,
          range.text() + ", or `\"inherit\"`: the inner packet's"};
}

// In the order in which they are read: what is said of one may depend on those before.
const std::vector<Option<Reading>>& one_tunnel_settings() {
  static const std::vector<Option<Reading>> all = option::all_reloadable<Reading>(
      {Option<Reading>{"port", "the port that the tunnel is under, whose device is `\"vxlan\"`", read_port,
                       [](const Reading& of) { return option::literal(of.port ? of.ports[*of.port].name : ""); }}
           .takes("name of a `[[port]]`")
           .by_default(option::required),
       Option<Reading>{"vni", "number of the network", read_vni,
                       [](const Reading& of) { return std::to_string(of.tunnel.vni); }}
           .takes("0 to " + std::to_string(packet::most_vni))
           .by_default(option::required),
       Option<Reading>{"local", "own outer address; the kernel has it on the twin of an underlay port", read_local,
                       [](const Reading& of) { return option::literal(of.tunnel.local.str()); }}
           .takes("IPv4 or IPv6 address")
           .by_default(option::required),
       Option<Reading>{"remotes",
                       "outer addresses of the other ends, of the family of `local`; may be left out where there is an "
                       "`fdb`",
                       [](Settings& section, Reading& to) { to.names_remotes = read_remotes(section, to.tunnel); },
                       shown_remotes}
           .takes("list of up to " + std::to_string(most_remotes) + " addresses")
           .by_default(option::required),
       option::flag<Reading>(
           "learning", [](auto& all) -> auto& { return all.tunnel.learning; },
           "learn which remote a station is behind from what comes out of the tunnel"),
       option::number<Reading>(
           "dstport", [](auto& all) -> auto& { return all.tunnel.udp_port; }, {1, 65535}, "UDP port of both ends"),
       inherited("ttl", &Tunnel::ttl, &Tunnel::inherit_ttl, {1, 255}, "TTL of the outer header"),
       inherited("dscp", &Tunnel::dscp, &Tunnel::inherit_dscp, {0, 63}, "DSCP of the outer header"),
       option::word<Reading>(
           "df", [](auto& all) -> auto& { return all.tunnel.dont_fragment; },
           {{"unset", DontFragment::unset}, {"set", DontFragment::set}, {"inherit", DontFragment::inherit}},
           "don't fragment of outer IPv4; `\"inherit\"`: the inner packet's"),
       Option<Reading>{"udp_checksum", "whether outer frames are sent with a UDP checksum",
                       [](Settings& section, Reading& to) {
                         to.tunnel.udp_checksum = section.boolean("udp_checksum", to.tunnel.local.family == 6);
                       },
                       [](const Reading& of) { return std::string(of.tunnel.udp_checksum ? "true" : "false"); }}
           .takes("`true`, `false`")
           .by_default("over IPv4 `false`, over IPv6 `true`")});
  return all;
}

Tunnel read_tunnel(Settings& section, const engine::PortTable& ports) {
  Reading reading{ports};
  option::read(one_tunnel_settings(), section, reading);
  const Tunnel& tunnel = reading.tunnel;
  read_stations(section, reading.tunnel);
  const bool is_own = reading.port && is_tunnel_port(ports[*reading.port]);
  if (is_own && !tunnel.local.empty()) {
    check_mtu(section, tunnel, ports);
    check_local(section, tunnel, ports[tunnel.port]);
  }
  if (!reading.names_remotes && !section.has("fdb")) {
    section.error("remotes", "is missing: the addresses of the tunnel's other ends, such as [\"192.0.2.2\"]");
  }
  section.finish();
  return std::move(reading.tunnel);
}

}  // namespace

// `stations` may have many remotes.
std::vector<IpAddress> remotes_of(const Tunnel& tunnel) {
  std::vector<IpAddress> all = tunnel.remotes;
  std::set<IpAddress> known(all.begin(), all.end());
  for (const auto& [mac, address] : tunnel.stations) {
    if (known.insert(address).second) all.push_back(address);
  }
  return all;
}

std::set<IpAddress> remotes_of(const TunnelSettings& settings) {
  std::set<IpAddress> all;
  for (const Tunnel& tunnel : settings.tunnels) {
    all.insert(tunnel.remotes.begin(), tunnel.remotes.end());
    for (const auto& [mac, address] : tunnel.stations) all.insert(address);
  }
  return all;
}

bool changes_network(const TunnelSettings& before, const Tunnel& tunnel) {
  return std::ranges::any_of(before.tunnels,
                             [&](const Tunnel& old) { return old.port == tunnel.port && old.vni != tunnel.vni; });
}

const std::vector<Option<TunnelSettings>>& vxlan_settings() {
  static const std::vector<Option<TunnelSettings>> all = {
      option::number("max_fdb", &TunnelSettings::most_learned, {8, 1 << 20, "stations"},
                     "capacity for what each tunnel learns; more are flooded, and counted as `vxlan_fdb_full`"),
      option::number("ageing", &TunnelSettings::ageing, {1, 1'000'000, "s"},
                     "time after which a silent station is forgotten")
          .reloadable()};
  return all;
}

std::vector<OptionSection> vxlan_sections() {
  const engine::PortTable none;
  const Reading usual{none};
  return {
      option::section("[vxlan]", vxlan_settings()),
      option::section("[[vxlan.tunnel]]", one_tunnel_settings(), "One for each port of the device `vxlan`.", &usual),
      option::section("[[vxlan.tunnel.fdb]]", station_settings(),
                      "Any number: stations that are never learned to be elsewhere.")};
}

std::vector<std::string> local_notes(Settings& settings, const engine::PortTable& ports) {
  const auto has = [&](const IpAddress& address) {
    for (std::size_t p = 0; p < ports.size(); ++p) {
      if (std::ranges::find(ports[p].addresses, address) != ports[p].addresses.end()) return true;
    }
    return false;
  };
  // A port without one in the file gets its addresses from somebody else, and may have this one.
  std::vector<std::string> notes;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    if (ports[p].has_twin && !ports[p].is_virtual && ports[p].addresses.empty()) return notes;
  }
  for (const Settings& tunnel : settings.sections("tunnel")) {
    Settings section = tunnel;
    const auto local = IpAddress::parse(section.text("local", ""));
    if (!local || has(*local)) continue;
    notes.push_back(section.place("local") + ": [[vxlan.tunnel]] local = \"" + local->str() +
                    "\": no [[port]] has that address; unless something else gives it to the twin of an underlay port, "
                    "the kernel has no way from it");
  }
  return notes;
}

TunnelSettings read_tunnels(Settings& settings, const engine::PortTable& ports) {
  TunnelSettings read;
  option::read(vxlan_settings(), settings, read);
  std::vector<Settings> sections = settings.sections("tunnel");
  for (Settings& section : sections) {
    Tunnel tunnel = read_tunnel(section, ports);
    for (std::size_t i = 0; i < read.tunnels.size(); ++i) {
      const Tunnel& other = read.tunnels[i];
      const std::string where = "the same as in line " + std::to_string(sections[i].line("")) + ": ";
      if (ports.index(section.text("port", "")) && other.port == tunnel.port) {
        section.error("port", where + "a port is the end of one tunnel");
      } else if (other.vni == tunnel.vni && other.local == tunnel.local && other.udp_port == tunnel.udp_port) {
        section.error("vni", where + "frames of this network to this address could be either tunnel's");
      }
    }
    read.tunnels.push_back(std::move(tunnel));
  }
  if (sections.empty()) {
    settings.error("", "there is no tunnel: add a [[vxlan.tunnel]] with port, vni, local and remotes");
    return read;
  }
  if (const std::size_t remotes = remotes_of(read).size(); remotes > RemoteIds::most) {
    settings.error("", "the tunnels have " + std::to_string(remotes) + " addresses of remotes, and there may be " +
                           std::to_string(RemoteIds::most) + ": give some tunnels to another gateway");
  }
  for (std::size_t p = 0; p < ports.size(); ++p) {
    const bool has_tunnel = std::ranges::any_of(read.tunnels, [&](const Tunnel& one) { return one.port == p; });
    if (is_tunnel_port(ports[p]) && !has_tunnel) {
      settings.error("", "no [[vxlan.tunnel]] has port = \"" + ports[p].name + "\", whose device is \"vxlan\"");
    }
  }
  return read;
}

}  // namespace sluice::function
