#include "base/capability.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace sluice {

// By the system call: no library is wanted for it.
bool has_capability(unsigned capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  return syscall(SYS_capget, &header, sets) == 0 &&
         (sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

}  // namespace sluice
