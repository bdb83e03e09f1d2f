#include "port/packet_socket.h"

#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace sluice::port {
namespace {

struct Made {
  std::mutex mutex;
  std::vector<int> sockets;
};

// setsockopt() may be called before this file's static objects are made.
Made& made() {
  static Made instance;
  return instance;
}

}  // namespace

std::vector<int> PacketSockets::take_new() {
  const std::lock_guard lock(made().mutex);
  return std::exchange(made().sockets, {});
}

std::uint64_t PacketSockets::missed() {
  const std::lock_guard lock(mutex_);
  for (const int socket : sockets_) {
    tpacket_stats since{};
    socklen_t length = sizeof since;
    if (getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &since, &length) == 0) {
      missed_ += since.tp_drops;
    }
  }
  return missed_;
}

}  // namespace sluice::port

extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  if (level == SOL_PACKET && name == PACKET_FANOUT && length == sizeof(int)) {
    const int on = 1;
    syscall(SYS_setsockopt, fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on,
            sizeof on);  // Linux 4.20; older ones go without
    int fanout = 0;
    std::memcpy(&fanout, value, sizeof fanout);
    fanout &= ~(PACKET_FANOUT_FLAG_DEFRAG << 16);
    return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, &fanout, sizeof fanout));
  }
  const auto result = static_cast<int>(syscall(SYS_setsockopt, fd, level, name, value, length));
  if (level == SOL_PACKET && name == PACKET_RX_RING && result == 0) {
    const std::lock_guard lock(sluice::port::made().mutex);
    sluice::port::made().sockets.push_back(fd);
  }
  return result;
}

extern "C" int getsockopt(int fd, int level, int name, void* value, socklen_t* length) noexcept {
  const auto result = static_cast<int>(syscall(SYS_getsockopt, fd, level, name, value, length));
  // The kernel puts both into rx_dropped for those who ask with the short form of the structure.
  if (level == SOL_XDP && name == XDP_STATISTICS && result == 0 && *length == sizeof(xdp_statistics)) {
    auto* statistics = static_cast<xdp_statistics*>(value);
    statistics->rx_dropped += statistics->rx_ring_full;
  }
  return result;
}

// Not by the name that poll.h declares: that declaration says that the caller's events are only written.
extern "C" int poll_of_this_program(pollfd* fds, nfds_t count, int timeout) __asm__("poll");
extern "C" int poll_of_this_program(pollfd* fds, nfds_t count, int timeout) {
  if (timeout < 0 && count == 1 && fds->events == POLLOUT) {
    int domain = AF_UNSPEC;
    socklen_t length = sizeof domain;
    if (getsockopt(fds->fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_PACKET) {
      timeout = 0;
    }
  }
  // Not every architecture has a poll of its own.
  timespec time{timeout / 1000, timeout % 1000 * 1'000'000L};
  return static_cast<int>(syscall(SYS_ppoll, fds, count, timeout < 0 ? nullptr : &time, nullptr, 0));
}
