// A lock on something in a network namespace that one process at a time may use: an interface, a routing table.
//
// The lock is a Unix socket with an abstract name, of which each network namespace has its own. The kernel removes it
// when the process ends, in whatever way. Only processes of root and of this process's user count as holders, so that
// no other user can keep a gateway from starting.
//
// Thread-safety: none. Cost: some system calls, start only.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace sluice {

class NamespaceLock {
 public:
  // Takes the lock for the lifetime of the object. `name`: unique, at most 100 characters. The Error names the process
  // that has the lock: "`what` is in use by another gateway (process 7): `advice`".
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
