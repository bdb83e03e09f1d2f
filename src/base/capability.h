// What this process may do, of capabilities(7). Thread-safety: any thread; of the calling one. Cost: a system call.
#pragma once

#include <linux/capability.h>

namespace sluice {

// Whether it has `capability` (CAP_NET_ADMIN) now; a container's own rules come on top.
bool has_capability(unsigned capability);

}  // namespace sluice
