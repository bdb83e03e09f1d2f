#include "port/interface_settings.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace sluice::port {
namespace {

bool request(const std::string& interface, unsigned long operation, ifreq& argument) {
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) {
    return false;
  }
  interface.copy(argument.ifr_name, IFNAMSIZ - 1);
  const bool ok = ioctl(control, operation, &argument) == 0;
  close(control);
  return ok;
}

}  // namespace

unsigned interface_mtu(const std::string& interface) {
  ifreq size{};
  return request(interface, SIOCGIFMTU, size) ? static_cast<unsigned>(size.ifr_mtu) : 0;
}

InterfaceSettings::InterfaceSettings(std::string interface, unsigned mtu)
    : interface_(std::move(interface)), wanted_mtu_(static_cast<int>(mtu)) {
  mtu_before_ = static_cast<int>(interface_mtu(interface_));
  ifreq flags{};
  if (request(interface_, SIOCGIFFLAGS, flags)) {
    promiscuous_before_ = (flags.ifr_flags & IFF_PROMISC) != 0;
  }
}

InterfaceSettings::~InterfaceSettings() {
  ifreq size{};
  if (mtu_before_ != 0 && mtu_before_ != wanted_mtu_ && request(interface_, SIOCGIFMTU, size) &&
      size.ifr_mtu == wanted_mtu_) {
    size.ifr_mtu = mtu_before_;
    request(interface_, SIOCSIFMTU, size);
  }
  ifreq flags{};
  if (!promiscuous_before_ && request(interface_, SIOCGIFFLAGS, flags) && (flags.ifr_flags & IFF_PROMISC) != 0) {
    flags.ifr_flags = static_cast<short>(flags.ifr_flags & ~IFF_PROMISC);
    request(interface_, SIOCSIFFLAGS, flags);
  }
}

}  // namespace sluice::port
