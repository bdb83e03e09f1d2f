#include "port/interface_settings.h"

#include <net/if.h>

#include <cerrno>

#include "port/interface_request.h"

namespace sluice::port {

unsigned interface_mtu(const std::string& interface) {
  ifreq size{};
  return interface_request(interface, SIOCGIFMTU, size) ? static_cast<unsigned>(size.ifr_mtu) : 0;
}

int set_interface_mtu(const std::string& interface, unsigned mtu) {
  ifreq size{};
  size.ifr_mtu = static_cast<int>(mtu);
  return interface_request(interface, SIOCSIFMTU, size) ? 0 : errno;
}

bool set_promiscuous(const std::string& interface) {
  ifreq flags{};
  if (!interface_request(interface, SIOCGIFFLAGS, flags)) {
    return false;
  }
  flags.ifr_flags = static_cast<short>(flags.ifr_flags | IFF_PROMISC);
  return interface_request(interface, SIOCSIFFLAGS, flags);
}

InterfaceSettings::InterfaceSettings(const std::string& interface, unsigned mtu)
    : link_(interface), wanted_mtu_(static_cast<int>(mtu)) {
  mtu_before_ = static_cast<int>(interface_mtu(interface));
  ifreq flags{};
  if (interface_request(interface, SIOCGIFFLAGS, flags)) {
    promiscuous_before_ = (flags.ifr_flags & IFF_PROMISC) != 0;
  }
}

InterfaceSettings::~InterfaceSettings() {
  const std::string interface = link_.name();
  if (interface.empty()) {
    return;
  }
  ifreq size{};
  if (mtu_before_ != 0 && mtu_before_ != wanted_mtu_ && interface_request(interface, SIOCGIFMTU, size) &&
      size.ifr_mtu == wanted_mtu_) {
    size.ifr_mtu = mtu_before_;
    interface_request(interface, SIOCSIFMTU, size);
  }
  ifreq flags{};
  if (!promiscuous_before_ && interface_request(interface, SIOCGIFFLAGS, flags) &&
      (flags.ifr_flags & IFF_PROMISC) != 0) {
    flags.ifr_flags = static_cast<short>(flags.ifr_flags & ~IFF_PROMISC);
    interface_request(interface, SIOCSIFFLAGS, flags);
  }
}

}  // namespace sluice::port
