#include "port/packet_socket.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace sluice::port {
namespace {
thread_local std::vector<int> opened;
}  // namespace

std::vector<int> take_packet_sockets() {
  return std::exchange(opened, {});
}

bool interface_running(const std::string& interface) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  const bool known = ioctl(fd, SIOCGIFFLAGS, &request) == 0;
  close(fd);
  return known && (request.ifr_flags & IFF_UP) != 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

}  // namespace sluice::port

extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  if (level == SOL_PACKET && name == PACKET_FANOUT && length == sizeof(int)) {
    sluice::port::opened.push_back(fd);
    const int on = 1;
    syscall(SYS_setsockopt, fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on,
            sizeof on);  // Linux 4.20; older ones go without
    int fanout = 0;
    std::memcpy(&fanout, value, sizeof fanout);
    fanout &= ~(PACKET_FANOUT_FLAG_DEFRAG << 16);
    return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, &fanout, sizeof fanout));
  }
  return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, value, length));
}
