// The unix socket that changes come by: root, its owner and one group may open it, and one gateway at a time has it.
//
// A file PATH.lock beside it is held (flock) for as long as the gateway lives, however that ends: who gets the lock
// takes the place of a socket that a killed gateway left. Network namespaces share the file system, so the default path
// names the namespace and the port of the TCP side.
//
// Thread-safety: none (the control thread). Cost: some system calls, start only.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::control {

// "/run/sluice/9230-4026531840.sock": of the gateway in this process's network namespace whose API has this TCP port.
// Without the right to make that folder it lies in $XDG_RUNTIME_DIR/sluice instead, where there is one.
std::string default_socket_path(int port);

// What is wrong with a path, in a sentence's middle; empty: nothing. Looks at the text and at what is there.
std::string why_not_socket_path(const std::string& path);

// A group of /etc/group by name, or a number. Nothing: there is none of that name.
std::optional<gid_t> find_group(const std::string& name);

// An Error where the socket could not be given to the group: there is none of that name, or this process may not.
Expected<void> check_group(const std::string& name);

// Removes sockets of gateways that were killed, and their locks, which default_socket_path() names: nobody listens
// there or has the lock. Others' files stay. Returns their paths. `folder`: the system's, but for tests.
std::vector<std::string> remove_dead_sockets(const std::string& folder = "/run/sluice");

class ApiSocket {
 public:
  // Makes the last folder of the path if it is not there (0755). `group`: a name or number; empty: this process's own.
  // Errors: no permission, no such group, a file of another kind, a living gateway (with its process).
  static Expected<std::unique_ptr<ApiSocket>> open(const std::string& path, const std::string& group);
  ~ApiSocket();  // Removes the socket and its lock.
  ApiSocket(const ApiSocket&) = delete;
  ApiSocket& operator=(const ApiSocket&) = delete;

  // Listening; whoever takes it closes it.
  int take() { return std::exchange(fd_, -1); }
  const std::string& path() const { return path_; }

 private:
  explicit ApiSocket(std::string path) : path_(std::move(path)) {}
  Expected<void> lock(std::chrono::milliseconds patience);  // for one that another process has
  Expected<void> listen(const std::string& group);
  friend std::vector<std::string> remove_dead_sockets(const std::string& folder);

  const std::string path_;
  int lock_ = -1, fd_ = -1;
  bool made_ = false;  // the socket at path_ is ours
};

// Who is at the other end of a connected unix socket.
std::optional<ucred> peer_of(int fd);

// A connection to the socket; the caller closes it. Errors say what a user can do.
Expected<int> connect_to_socket(const std::string& path);

}  // namespace sluice::control
