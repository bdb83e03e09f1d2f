#include "port/interface_lock.h"

#include <net/if.h>

namespace sluice::port {

Expected<InterfaceLock> InterfaceLock::take(const std::string& interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) return InterfaceLock(NamespaceLock());
  auto lock = NamespaceLock::take("sluice/interface/" + std::to_string(index), "the interface '" + interface + "'",
                                  "each would forward all of its frames; stop that one, or name another interface");
  if (!lock) return tl::unexpected(lock.error());
  return InterfaceLock(std::move(*lock));
}

}  // namespace sluice::port
