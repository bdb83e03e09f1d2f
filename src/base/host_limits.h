// What the host gives its programs: how many files may be open, and which UDP ports the kernel hands out to whoever
// asks for any.
//
// Thread-safety: any thread. Cost: control path; a few files of /proc.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

struct HostLimits {
  std::uint64_t files = 0;  // that a program which raises its limit may have open; 0: not known
  std::uint16_t first_local_port = 0, last_local_port = 0;  // net.ipv4.ip_local_port_range; 0: not known
  std::string reserved_ports = {};                          // net.ipv4.ip_local_reserved_ports: "80,20000-29999"
};

// Of this host, for this process. `root`: where /proc/sys is looked for.
HostLimits host_limits(const std::string& root = "");

// Raises this process's limit to so many files, with CAP_SYS_RESOURCE the hard one, too; how many may be open then.
std::uint64_t raise_file_limit(std::uint64_t files);

}  // namespace sluice
