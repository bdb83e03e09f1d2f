// Which frames are of RTSP connections that the proxy terminates: TCP to a server of [srtp.rtsp] at one of its ports,
// or from one. Ethernet with IPv4, or with IPv6 without extension headers.
//
// Thread-safety: any thread. Cost, estimated: of a frame that is not TCP 1 ns, of TCP with other ports 2.
#pragma once

#include <cstdint>
#include <vector>

#include "function/srtp/rtsp_options.h"
#include "function/srtp/server_media.h"

namespace sluice::function {

enum class RtspFrame : std::uint8_t {
  none,
  rtsp,
  fragment,  // of TCP between a server and somebody, whose ports are not known
};

class RtspFlows {
 public:
  RtspFlows() = default;
  explicit RtspFlows(const RtspOptions& options) : servers_(options.servers), ports_(options.ports) {}

  bool empty() const { return servers_.empty(); }
  // Nothing at or behind frame + length is read.
  RtspFrame look_at(const std::uint8_t* frame, std::uint32_t length) const;

 private:
  struct Ends;
  RtspFrame look_closer(const Ends& ends) const;
  bool is_port(std::uint16_t port) const;

  ServerPrefixes servers_;
  std::vector<std::uint16_t> ports_;
};

}  // namespace sluice::function
