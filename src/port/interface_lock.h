// A kernel interface is one gateway's: packet sockets of two would both see all of its frames, and forward each twice.
//
// The lock is a Unix socket of an abstract name, with the interface's index in it, which the kernel keeps by network
// namespace, as it does interfaces: it vanishes with the process, however that ends, and leaves nothing behind. Only
// processes of root and of this one's user count as holders, so that no one else can keep a gateway from starting.
//
// Thread-safety: none. Cost: some system calls, start only.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace sluice::port {

class InterfaceLock {
 public:
  // For as long as the lock lives. An Error names the interface and the process that has it. `interface`: by any of its
  // names; one that is not there has none to share it with.
  static Expected<InterfaceLock> take(const std::string& interface);

  InterfaceLock(InterfaceLock&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  InterfaceLock& operator=(InterfaceLock&&) = delete;
  ~InterfaceLock();

 private:
  explicit InterfaceLock(int socket) : socket_(socket) {}
  int socket_;
};

}  // namespace sluice::port
