#include "port/kernel_link.h"

#include <net/if.h>

#include <cerrno>

#include "port/interface_request.h"

namespace sluice::port {

KernelLink::KernelLink(const std::string& interface)
    : index_(if_nametoindex(interface.c_str())), deleted_(index_ == 0) {}

bool KernelLink::has_flags(short wanted) const {
  const std::string interface = name();
  ifreq flags{};
  return !interface.empty() && interface_request(interface, SIOCGIFFLAGS, flags) &&
         (flags.ifr_flags & wanted) == wanted;
}

bool KernelLink::up() const {
  return has_flags(IFF_UP | IFF_RUNNING);
}

bool KernelLink::enabled() const {
  return has_flags(IFF_UP);
}

std::string KernelLink::name() const {
  char name[IF_NAMESIZE];
  return !deleted() && if_indextoname(index_, name) != nullptr ? name : "";
}

bool KernelLink::deleted() const {
  char name[IF_NAMESIZE];
  if (!deleted_.load(std::memory_order_relaxed) && if_indextoname(index_, name) == nullptr && errno == ENXIO) {
    deleted_.store(true, std::memory_order_relaxed);
  }
  return deleted_.load(std::memory_order_relaxed);
}

}  // namespace sluice::port
