#include "ipsec/xfrm/listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/in_use.h"

namespace sluice::ipsec::xfrm {
namespace {

constexpr mode_t only_owner = 0600;
constexpr int backlog = 16;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

tl::unexpected<Error> failed(const std::string& path, int why) {
  const bool forbidden = why == EACCES || why == EPERM || why == EROFS;
  return make_error("the socket of XFRM, " + path + ": " + std::strerror(why) +
                    (forbidden       ? " (run as root, or name a path in a folder that this user may write)"
                     : why == ENOENT ? " (make its folder, or name a path in one that is there)"
                                     : ""));
}

bool somebody_listens(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const bool alive = connected || errno == EAGAIN;  // its queue is full
  close(fd);
  return alive;
}

}  // namespace

Expected<Listener> Listener::open(const std::string& path) {
  Listener listener(path);
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) return failed(path, ENAMETOOLONG);
  auto done = listener.lock();
  if (done) done = listener.listen();
  if (!done) return tl::unexpected(done.error());
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      fd_(std::exchange(other.fd_, -1)),
      made_(std::exchange(other.made_, false)) {}

Listener::~Listener() {
  if (made_) unlink(path_.c_str());
  if (fd_ >= 0) close(fd_);
  if (lock_ >= 0) close(lock_);
}

Expected<void> Listener::lock() {
  const std::string path = path_ + ".lock";
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, only_owner);
  if (lock_ < 0) return failed(path, errno);
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return {};
  return make_error("the socket of XFRM, " + path_ + "," + std::string(in_use_by_another) +
                    "process: name another path, or stop that one");
}

// The mode is that of the socket before bind(), so that nobody else can connect at any time.
Expected<void> Listener::listen() {
  const sockaddr_un address = address_of(path_);
  struct stat about {};
  if (lstat(path_.c_str(), &about) == 0) {
    if (!S_ISSOCK(about.st_mode)) return make_error("the socket of XFRM, " + path_ + ": is there and no socket");
    if (somebody_listens(address)) {
      return make_error("the socket of XFRM, " + path_ + "," + std::string(in_use_by_another) +
                        "process: name another path, or stop that one");
    }
    unlink(path_.c_str());
  }
  fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0 || fchmod(fd_, only_owner) != 0 ||
      bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed(path_, errno);
  }
  made_ = true;
  if (::listen(fd_, backlog) != 0) return failed(path_, errno);
  return {};
}

}  // namespace sluice::ipsec::xfrm
