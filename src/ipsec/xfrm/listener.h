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

// What is wrong with such a path whatever host it is on, in a sentence's middle; empty: nothing.
std::string why_no_socket_path(const std::string& path);
// Why Listener::open() would refuse it here, whoever runs; empty: it would not. Makes nothing, and does not look who
// listens there.
std::string why_no_socket_here(const std::string& path);

class Listener {
 public:
  // Makes the path's last folder if it is not there (0755). Errors: no permission, a path that is none
  // (why_no_socket_path()), a file of another kind, a living process.
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
