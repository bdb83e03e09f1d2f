#include "control/kernel_forwarding.h"

#include <algorithm>
#include <fstream>

namespace sluice::control {
namespace {

// Whether the setting is there and 0.
bool is_off(const std::string& root, const std::string& setting) {
  std::ifstream file(root + "/proc/sys/" + setting);
  int value = 0;
  return static_cast<bool>(file >> value) && value == 0;
}

// Whether one of the twins has an IPv6 address that is not its link's only (/proc/net/if_inet6: address, index, length,
// scope, flags, name).
bool speaks_ipv6(const std::vector<std::string>& twins, const std::string& root) {
  constexpr unsigned link_scope = 0x20;
  std::ifstream file(root + "/proc/net/if_inet6");
  std::string address, index, length, flags, name;
  unsigned scope = 0;
  while (file >> address >> index >> length >> std::hex >> scope >> flags >> name) {
    if (scope != link_scope && std::find(twins.begin(), twins.end(), name) != twins.end()) {
      return true;
    }
  }
  return false;
}

void append(std::string& list, const std::string& separator, const std::string& item) {
  list += (list.empty() ? "" : separator) + item;
}

}  // namespace

ForwardingOff forwarding_off(const std::vector<std::string>& twins, const std::string& root) {
  std::string where;
  std::string settings;
  for (const std::string& twin : twins) {
    if (is_off(root, "net/ipv4/conf/" + twin + "/forwarding")) {
      append(where, ", ", twin);
      // sysctl takes dots for slashes, unless the first separator is a slash.
      const bool dotted = twin.find('.') != std::string::npos;
      append(settings, " ",
             dotted ? "net/ipv4/conf/" + twin + "/forwarding=1" : "net.ipv4.conf." + twin + ".forwarding=1");
    }
  }
  if (!where.empty() && is_off(root, "net/ipv4/ip_forward")) {
    settings = "net.ipv4.ip_forward=1";  // sets it on every interface
  }
  std::string what = where.empty() ? "" : "IPv4 forwarding is off on " + where;
  if (is_off(root, "net/ipv6/conf/all/forwarding") && speaks_ipv6(twins, root)) {
    append(what, ", ", "IPv6 forwarding is off");
    append(settings, " ", "net.ipv6.conf.all.forwarding=1");
  }
  return {what, settings};
}

std::string forwarding_warning(const ForwardingOff& off) {
  return off.what.empty() ? ""
                          : "kernel: " + off.what +
                                ": it will not forward or answer what the fast path leaves to it (first packets to a "
                                "neighbour, traceroute, path MTU, no route): sysctl -w " +
                                off.settings;
}

}  // namespace sluice::control
