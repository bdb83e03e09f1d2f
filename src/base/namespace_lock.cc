#include "base/namespace_lock.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/in_use.h"

namespace sluice {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

Address address_of(const std::string& text) {
  Address address;
  address.name.sun_family = AF_UNIX;
  std::copy(text.begin(), text.end(), address.name.sun_path + 1);  // behind a NUL: abstract
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

int new_socket() {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// Who listens there; all -1: nobody, or not any more.
ucred holder_of(const Address& address) {
  ucred holder{-1, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  const int asking = new_socket();
  if (asking < 0) return holder;
  ucred answer{};
  socklen_t length = sizeof answer;
  if (connect(asking, reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0 &&
      getsockopt(asking, SOL_SOCKET, SO_PEERCRED, &answer, &length) == 0) {
    holder = answer;
  }
  close(asking);
  return holder;
}

std::string text_of(const ucred& holder) {
  // 0: of another namespace of processes, where its number says nothing here.
  return holder.pid > 0 ? "process " + std::to_string(holder.pid) : "another process";
}

}  // namespace

Expected<NamespaceLock> NamespaceLock::take(const std::string& name, const std::string& what,
                                            const std::string& advice) {
  const Address address = address_of(name);
  const int lock = new_socket();
  if (lock >= 0 && bind(lock, reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0 &&
      listen(lock, 1) == 0) {
    return NamespaceLock(lock);
  }
  const int error = errno;
  if (lock >= 0) close(lock);
  if (error != EADDRINUSE) {
    return make_error("cannot take " + what + " for this gateway alone: " + std::strerror(error));
  }
  const ucred holder = holder_of(address);
  if (holder.uid != static_cast<uid_t>(-1) && holder.uid != 0 && holder.uid != geteuid()) return NamespaceLock();
  if (holder.pid == getpid()) return make_error(what + " is in use by two ports of this program: " + advice);
  return make_error(what + std::string(in_use_by_another) + "gateway (" + text_of(holder) + "): " + advice);
}

NamespaceLock::~NamespaceLock() {
  if (socket_ >= 0) close(socket_);
}

}  // namespace sluice
