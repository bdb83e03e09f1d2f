// What the host gives its programs that the proxy has to live with: how many files may be open, and which UDP ports the
// kernel hands out to whoever asks for any.
//
// Thread-safety: any thread. Cost: control path; a few files of /proc.
#pragma once

#include <cstdint>
#include <string>

#include "function/srtp/rtsp_options.h"

namespace sluice::control::rtsp {

struct HostLimits {
  std::uint64_t files = 0;  // that a program which raises its limit may have open; 0: not known
  std::uint16_t first_local_port = 0, last_local_port = 0;  // net.ipv4.ip_local_port_range; 0: not known
  std::string reserved_ports = {};                          // net.ipv4.ip_local_reserved_ports: "80,20000-29999"
};

// Of this host, for this process. `root`: where /proc/sys is looked for.
HostLimits host_limits(const std::string& root = "");

// With so many connections: two files each, and those of ports, twins and the rest.
std::uint64_t files_for(std::uint32_t connections);
// Raises this process's limit to what max_connections needs, with CAP_SYS_RESOURCE the hard one, too; how many files
// may be open then.
std::uint64_t raise_file_limit(std::uint32_t connections);
// The same for so many files.
std::uint64_t raise_file_limit_to(std::uint64_t files);

// A sentence each; empty: all is well.
std::string files_note(const function::RtspOptions& options, std::uint64_t files);
// Of the explicit mode: ports that media have and the host's programs may be given.
std::string media_ports_note(const function::RtspOptions& options, const HostLimits& limits);

}  // namespace sluice::control::rtsp
