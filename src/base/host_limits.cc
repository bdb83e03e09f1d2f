#include "base/host_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "base/capability.h"

namespace sluice {

HostLimits host_limits(const std::string& root) {
  HostLimits limits;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) limits.files = limit.rlim_max;
  if (has_capability(CAP_SYS_RESOURCE)) {
    std::uint64_t most = 0;
    if (std::ifstream(root + "/proc/sys/fs/nr_open") >> most) limits.files = std::max(limits.files, most);
  }
  unsigned first = 0, last = 0;
  if (std::ifstream(root + "/proc/sys/net/ipv4/ip_local_port_range") >> first >> last && last <= 65535) {
    limits.first_local_port = static_cast<std::uint16_t>(first);
    limits.last_local_port = static_cast<std::uint16_t>(last);
  }
  std::ifstream(root + "/proc/sys/net/ipv4/ip_local_reserved_ports") >> limits.reserved_ports;
  return limits;
}

std::uint64_t raise_file_limit(std::uint64_t files) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t wanted = files;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(wanted, host_limits().files);
  limit.rlim_max = std::max(limit.rlim_cur, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace sluice
