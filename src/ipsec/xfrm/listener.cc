#include "ipsec/xfrm/listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/in_use.h"

namespace sluice::ipsec::xfrm {
namespace {

constexpr mode_t only_owner = 0600, folder_mode = 0755;
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

bool is_folder(const std::filesystem::path& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

}  // namespace

std::string why_no_socket_path(const std::string& path) {
  if (!path.starts_with('/')) return "is no path that begins with /, as the daemon needs it, which runs elsewhere";
  if (path.ends_with('/')) return "is a folder's path: name the socket in it";
  if (path.size() < sizeof(sockaddr_un::sun_path)) return {};
  return "is longer than the " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
         " characters that a socket's path may have";
}

std::string why_no_socket_here(const std::string& path) {
  struct stat about {};
  if (lstat(path.c_str(), &about) == 0 && !S_ISSOCK(about.st_mode)) {
    return "is there and no socket: name a path of its own";
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!is_folder(folder) && (std::filesystem::exists(folder) || !is_folder(folder.parent_path()))) {
    return "there is no folder " + folder.string() + ": make it, or name a path in one that is there";
  }
  const std::filesystem::path& written = is_folder(folder) ? folder : folder.parent_path();
  if (access(written.c_str(), W_OK | X_OK) == 0) return {};
  return "this user may not write in " + written.string() + ": run as root, or name a path in a folder of its own";
}

Expected<Listener> Listener::open(const std::string& path) {
  Listener listener(path);
  if (const std::string why = why_no_socket_path(path); !why.empty()) {
    return make_error("the socket of XFRM, \"" + path + "\", " + why);
  }
  mkdir(std::filesystem::path(path).parent_path().c_str(), folder_mode);  // what fails is said of the file in it
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
