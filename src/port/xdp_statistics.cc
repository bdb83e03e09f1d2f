// Stands in front of libc's getsockopt() for the whole program: DPDK 22.11's af_xdp driver leaves the frames that found
// its receive ring full out of the number that it reports as lost. The kernel puts both into rx_dropped for those who
// ask with the short form of the structure.
#include <linux/if_xdp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int getsockopt(int fd, int level, int name, void* value, socklen_t* length) noexcept {
  const auto result = static_cast<int>(syscall(SYS_getsockopt, fd, level, name, value, length));
  if (level == SOL_XDP && name == XDP_STATISTICS && result == 0 && *length == sizeof(xdp_statistics)) {
    auto* statistics = static_cast<xdp_statistics*>(value);
    statistics->rx_dropped += statistics->rx_ring_full;
  }
  return result;
}
