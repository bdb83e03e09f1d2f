// A kernel interface is one gateway's: packet sockets of two would both see all of its frames, and forward each twice.
//
// The lock has the interface's index in its name (base/namespace_lock.h).
//
// Thread-safety: none. Cost: some system calls, start only.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "base/namespace_lock.h"

namespace sluice::port {

class InterfaceLock {
 public:
  // For as long as the lock lives. An Error names the interface and the process that has it. `interface`: by any of its
  // names; one that is not there has none to share it with.
  static Expected<InterfaceLock> take(const std::string& interface);

 private:
  explicit InterfaceLock(NamespaceLock lock) : lock_(std::move(lock)) {}
  NamespaceLock lock_;
};

}  // namespace sluice::port
