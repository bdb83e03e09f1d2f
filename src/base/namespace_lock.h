// Something of a network namespace that one process at a time has: an interface, a routing table.
//
// The lock is a Unix socket of an abstract name, which the kernel keeps by network namespace: it vanishes with the
// process, however that ends, and leaves nothing behind. Only processes of root and of this one's user count as
// holders, so that no one else can keep a gateway from starting.
//
// Thread-safety: none. Cost: some system calls, start only.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace sluice {

class NamespaceLock {
 public:
  // For as long as the lock lives. `name`: unique, 100 characters at most; the rest is for the Error, which names the
  // process that has it: "`what` is in use by another gateway (process 7): `advice`".
  static Expected<NamespaceLock> take(const std::string& name, const std::string& what, const std::string& advice);
  // Holds nothing.
  NamespaceLock() = default;

  NamespaceLock(NamespaceLock&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  NamespaceLock& operator=(NamespaceLock&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~NamespaceLock();

 private:
  explicit NamespaceLock(int socket) : socket_(socket) {}
  int socket_ = -1;
};

}  // namespace sluice
