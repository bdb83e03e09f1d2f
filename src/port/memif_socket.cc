#include "port/memif_socket.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "port/device_arguments.h"
#include "port/virtual_device.h"

namespace sluice::port {
namespace {

bool nobody_listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (end < 0) return false;
  const bool refused =
      connect(end, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno == ECONNREFUSED;
  close(end);
  return refused;
}

}  // namespace

void remove_stale_socket(const std::string& device) {
  if (!is_driver(device, "net_memif") || device_argument(device, "socket-abstract") != "no") return;
  const std::string role = device_argument(device, "role");
  if (role != "server" && role != "master") return;
  const std::string path = device_argument(device, "socket");
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode) || !nobody_listens(path)) return;
  if (unlink(path.c_str()) == 0) spdlog::warn("{}: a socket that nobody listens at any more: removed", path);
}

}  // namespace sluice::port
