// The unix socket that a daemon's XFRM messages come by: SEQPACKET, mode 0600, for one process at a time.
//
// A file PATH.lock beside it is held (flock) for as long as the listener lives, however that ends: who has the lock
// takes the place of a socket that a killed process left, if nobody answers there.
//
// Thread-safety: none. Cost: some system calls, start only.
#pragma once

#include <string>

#include "base/error.h"

namespace sluice::ipsec::xfrm {

class Listener {
 public:
  // The folder is there. Errors: no permission, a path that is too long, a file of another kind, a living process.
  static Expected<Listener> open(const std::string& path);
  ~Listener();  // removes the socket; the lock's file stays, so that no two processes hold locks of one path
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;

  int fd() const { return fd_; }  // listening, not blocking
  const std::string& path() const { return path_; }

 private:
  explicit Listener(std::string path) : path_(std::move(path)) {}
  Expected<void> lock();
  Expected<void> listen();

  std::string path_;
  int lock_ = -1, fd_ = -1;
  bool made_ = false;
};

}  // namespace sluice::ipsec::xfrm
