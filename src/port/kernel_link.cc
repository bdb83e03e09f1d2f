#include "port/kernel_link.h"

#include <net/if.h>

#include <cerrno>

#include "port/interface_request.h"

namespace sluice::port {

KernelLink::KernelLink(const std::string& interface)
    : index_(if_nametoindex(interface.c_str())), deleted_(index_ == 0) {}

bool KernelLink::up() const {
  // By the name that it has now: an interface may be renamed.
  char name[IF_NAMESIZE];
  ifreq flags{};
  return !deleted() && if_indextoname(index_, name) != nullptr && interface_request(name, SIOCGIFFLAGS, flags) &&
         (flags.ifr_flags & IFF_UP) != 0 && (flags.ifr_flags & IFF_RUNNING) != 0;
}

bool KernelLink::deleted() const {
  char name[IF_NAMESIZE];
  if (!deleted_.load(std::memory_order_relaxed) && if_indextoname(index_, name) == nullptr && errno == ENXIO) {
    deleted_.store(true, std::memory_order_relaxed);
  }
  return deleted_.load(std::memory_order_relaxed);
}

}  // namespace sluice::port
