#include "function/vxlan/tunnels.h"

#include <algorithm>
#include <optional>
#include <string>

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

void read_stations(Settings& section, Tunnel& tunnel) {
  for (Settings& entry : section.sections("fdb")) {
    const std::string mac_text = entry.required_text("mac");
    const std::string remote_text = entry.required_text("remote");
    entry.finish();
    if (mac_text.empty() || remote_text.empty()) continue;
    const auto mac = packet::MacAddress::parse(mac_text);
    const auto remote = read_end(entry, "remote", remote_text);
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

void read_outer_header(Settings& section, Tunnel& tunnel) {
  tunnel.udp_port = static_cast<std::uint16_t>(section.integer("dstport", packet::vxlan_port, 1, 65535));
  tunnel.inherit_ttl = section.is("ttl", "inherit");
  if (!tunnel.inherit_ttl) tunnel.ttl = static_cast<std::uint8_t>(section.integer("ttl", tunnel.ttl, 1, 255));
  tunnel.inherit_dscp = section.is("dscp", "inherit");
  if (!tunnel.inherit_dscp) tunnel.dscp = static_cast<std::uint8_t>(section.integer("dscp", 0, 0, 63));
  const std::string df = section.choice("df", "unset", {"unset", "set", "inherit"});
  tunnel.dont_fragment = df == "set"       ? DontFragment::set
                         : df == "inherit" ? DontFragment::inherit
                                           : DontFragment::unset;
  tunnel.udp_checksum = section.boolean("udp_checksum", tunnel.local.family == 6);
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

Tunnel read_tunnel(Settings& section, const engine::PortTable& ports) {
  Tunnel tunnel;
  const std::string name = section.required_text("port");
  const auto port = ports.index(name);
  if (!name.empty() && !port) {
    section.error("port", "there is no [[port]] named \"" + name + "\"");
  } else if (port && !ports[*port].is_virtual) {
    section.error("port", "is no end of a tunnel: a port of its own, with device = \"vxlan\", is");
  }
  tunnel.port = port.value_or(0);
  if (!section.has("vni"))
    section.error("vni", "is missing: the network's number, 1 to 16777215, as the remotes have it");
  tunnel.vni = static_cast<std::uint32_t>(section.integer("vni", 1, 0, packet::most_vni));
  if (const std::string local = section.required_text("local"); !local.empty()) {
    tunnel.local = read_end(section, "local", local).value_or(IpAddress{});
  }
  const bool names_remotes = read_remotes(section, tunnel);
  tunnel.learning = section.boolean("learning", true);
  read_outer_header(section, tunnel);
  read_stations(section, tunnel);
  if (port && ports[*port].is_virtual && !tunnel.local.empty()) check_mtu(section, tunnel, ports);
  if (!names_remotes && !section.has("fdb")) {
    section.error("remotes", "is missing: the addresses of the tunnel's other ends, such as [\"192.0.2.2\"]");
  }
  section.finish();
  return tunnel;
}

}  // namespace

TunnelSettings read_tunnels(Settings& settings, const engine::PortTable& ports) {
  TunnelSettings read;
  read.most_learned = static_cast<std::uint32_t>(settings.integer("max_fdb", 16384, 8, 1 << 20));
  read.ageing = static_cast<std::uint32_t>(settings.integer("ageing", 300, 1, 1'000'000));
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
  for (std::size_t p = 0; p < ports.size(); ++p) {
    const bool has_tunnel = std::ranges::any_of(read.tunnels, [&](const Tunnel& one) { return one.port == p; });
    if (ports[p].is_virtual && !has_tunnel) {
      settings.error("", "no [[vxlan.tunnel]] has port = \"" + ports[p].name + "\", whose device is \"vxlan\"");
    }
  }
  return read;
}

}  // namespace sluice::function
