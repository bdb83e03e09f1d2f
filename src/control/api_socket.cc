#include "control/api_socket.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>
#include <thread>
#include <utility>

#include "base/capability.h"
#include "base/in_use.h"

namespace sluice::control {
namespace {

constexpr const char* system_folder = "/run/sluice";
constexpr mode_t folder_mode = 0755, socket_mode = 0660, lock_mode = 0600;
constexpr int backlog = 64;
constexpr const char* needs_chown = " (run with CAP_CHOWN, or as a member of the group)";
// Who removes dead sockets holds a lock for a moment.
constexpr std::chrono::milliseconds lock_patience(200), between_tries(10);

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

std::string lock_path(const std::string& path) {
  return path + ".lock";
}

bool can_write_in(const std::string& folder) {
  if (access(folder.c_str(), W_OK | X_OK) == 0) return true;
  return errno == ENOENT && access(std::filesystem::path(folder).parent_path().c_str(), W_OK | X_OK) == 0;
}

tl::unexpected<Error> failed(const std::string& what, int why) {
  const bool forbidden = why == EACCES || why == EPERM || why == EROFS;
  return make_error(what + ": " + std::strerror(why) +
                    (forbidden ? " (run as root, or name a path in a folder that this user may write)" : ""));
}

// 0, and `fd` is connected; or errno.
int try_to_connect(const std::string& path, int& fd) {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return errno;
  const sockaddr_un address = address_of(path);
  if (connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    close(made);
    return why;
  }
  fd = made;
  return 0;
}

std::string holder_text(const std::string& path) {
  const auto fd = connect_to_socket(path);
  const auto holder = fd ? peer_of(*fd) : std::nullopt;
  if (fd) close(*fd);
  return holder && holder->pid > 0 ? " (process " + std::to_string(holder->pid) + ")" : "";
}

}  // namespace

std::string default_socket_path(int port) {
  struct stat about {};
  const bool known = stat("/proc/self/ns/net", &about) == 0;
  const std::string name = "/" + std::to_string(port) + "-" + std::to_string(known ? about.st_ino : 0) + ".sock";
  const char* const own = std::getenv("XDG_RUNTIME_DIR");
  const bool has_own = own != nullptr && *own == '/';
  return (can_write_in(system_folder) || !has_own ? system_folder : own + std::string("/sluice")) + name;
}

std::string why_not_socket_path(const std::string& path) {
  if (!path.starts_with('/')) return "allowed is a path that begins with /, \"auto\", or \"\" for none";
  if (lock_path(path).size() >= sizeof(sockaddr_un::sun_path)) {
    return "is longer than the " + std::to_string(sizeof(sockaddr_un::sun_path) - 1 - lock_path("").size()) +
           " characters that a socket's path may have";
  }
  struct stat about {};
  if (path.ends_with('/') || (stat(path.c_str(), &about) == 0 && !S_ISSOCK(about.st_mode))) {
    return "is there and no socket: name a path of its own";
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (stat(folder.c_str(), &about) != 0 && stat(folder.parent_path().c_str(), &about) != 0) {
    return "there is no folder " + folder.string() + ": make it, or name a path in one that is there";
  }
  return {};
}

std::optional<gid_t> find_group(const std::string& name) {
  gid_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (problem == std::errc{} && end == name.data() + name.size()) return number;
  const group* const found = getgrnam(name.c_str());
  return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
}

Expected<void> check_group(const std::string& name) {
  if (name.empty()) return {};
  const std::string setting = "[api] group = \"" + name + "\": ";
  const auto gid = find_group(name);
  if (!gid) return make_error(setting + "there is no such group: addgroup --system " + name);
  if (has_capability(CAP_CHOWN) || *gid == getegid() || group_member(*gid) != 0) return {};
  return make_error(setting + "the socket cannot be given to it: " + std::strerror(EPERM) + needs_chown);
}

std::optional<ucred> peer_of(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer;
}

Expected<int> connect_to_socket(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return make_error(path + " is too long for a socket's path");
  int fd = -1;
  const int why = try_to_connect(path, fd);
  switch (why) {
    case 0:
      return fd;
    case EACCES:
    case EPERM:
      return make_error("no permission to open " + path +
                        ": changes are for root and the group of that socket ([api] group in the configuration)");
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
      return make_error("no gateway listens at " + path +
                        ": is sluice running? ([api] socket in its configuration; --socket PATH for another)");
    case EAGAIN:
      return make_error(path + " takes no more connections: is sluice stopped (SIGSTOP, a debugger)?");
    default:
      return make_error(path + ": " + std::strerror(why));
  }
}

Expected<std::unique_ptr<ApiSocket>> ApiSocket::open(const std::string& path, const std::string& group) {
  const std::string setting = "[api] socket = \"" + path + "\": ";
  if (const std::string why = why_not_socket_path(path); !why.empty()) return make_error(setting + why);
  std::unique_ptr<ApiSocket> made(new ApiSocket(path));
  const auto done = made->lock(lock_patience).and_then([&] { return made->listen(group); });
  if (!done) return make_error((done.error().message.starts_with("[api]") ? "" : setting) + done.error().message);
  return made;
}

// The lock's file is removed at the end of who has it, so that one is held that is not there any more: then once more.
Expected<void> ApiSocket::lock(std::chrono::milliseconds patience) {
  const std::string path = lock_path(path_);
  const std::string folder = std::filesystem::path(path_).parent_path();
  if (mkdir(folder.c_str(), folder_mode) != 0 && errno != EEXIST && access(folder.c_str(), X_OK) != 0) {
    return failed("the folder " + folder + " cannot be made", errno);
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, lock_mode);
    if (fd < 0) return failed(path + " cannot be made", errno);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int why = errno;
      close(fd);
      if (why != EWOULDBLOCK) return failed(path + " cannot be locked", why);
      if (std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(between_tries);
        continue;
      }
      return make_error("it" + std::string(in_use_by_another) + "gateway" + holder_text(path_) +
                        ": give this one a path of its own");
    }
    struct stat held {};
    struct stat there {};
    if (fstat(fd, &held) == 0 && stat(path.c_str(), &there) == 0 && held.st_ino == there.st_ino &&
        held.st_dev == there.st_dev) {
      lock_ = fd;
      return {};
    }
    close(fd);
  }
}

// Nobody can connect between bind() and listen(), when owner and mode are as they are to be.
Expected<void> ApiSocket::listen(const std::string& group) {
  std::optional<gid_t> gid;
  if (!group.empty() && !(gid = find_group(group))) return check_group(group);
  if (unlink(path_.c_str()) != 0 && errno != ENOENT)
    return failed("what a gateway before left cannot be removed", errno);
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(path_);
  if (fd_ < 0 || bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed("cannot be made", errno);
  }
  made_ = true;
  if (gid && chown(path_.c_str(), static_cast<uid_t>(-1), *gid) != 0) {
    const int why = errno;
    return make_error("[api] group = \"" + group + "\": the socket cannot be given to it: " + std::strerror(why) +
                      (why == EPERM ? needs_chown : ""));
  }
  if (chmod(path_.c_str(), socket_mode) != 0 || ::listen(fd_, backlog) != 0) return failed("cannot listen", errno);
  return {};
}

std::vector<std::string> remove_dead_sockets(const std::string& folder) {
  static const std::regex ours("([0-9]+-[0-9]+\\.sock)(\\.lock)?");
  std::set<std::string> names;
  std::error_code none;
  for (std::filesystem::directory_iterator at(folder, none), end; !none && at != end; at.increment(none)) {
    const std::string name = at->path().filename();
    if (std::smatch parts; std::regex_match(name, parts, ours)) names.insert(parts[1]);
  }
  std::vector<std::string> removed;
  for (const std::string& name : names) {
    ApiSocket dead(folder + "/" + name);
    struct stat about {};
    const bool is_there = lstat(dead.path().c_str(), &about) == 0;
    if (is_there && !S_ISSOCK(about.st_mode)) continue;
    if (!dead.lock(std::chrono::milliseconds(0))) continue;  // a gateway that runs has it, or it is another user's
    int fd = -1;
    dead.made_ = is_there && try_to_connect(dead.path(), fd) == ECONNREFUSED;
    if (fd >= 0) close(fd);
    if (dead.made_) removed.push_back(dead.path());
  }
  return removed;
}

ApiSocket::~ApiSocket() {
  if (fd_ >= 0) close(fd_);
  if (made_) unlink(path_.c_str());
  if (lock_ >= 0) {
    unlink(lock_path(path_).c_str());
    close(lock_);
  }
}

}  // namespace sluice::control
