// Which frames are of RTSP connections that the proxy terminates: TCP to a server of [srtp.rtsp] at one of its ports,
// or from one. Of the explicit mode's servers (at any of their ports and `ports`) what comes from them is, for the
// proxy's own connections are among it, and what goes to them is not: there somebody opens a server past the proxy.
// With `unprotected = "pass"` these are nothing of the kind. Ethernet with IPv4, or with IPv6 without extension
// headers.
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
  past,      // to a server of the explicit mode
  fragment,  // of TCP between a server and somebody, whose ports are not known
};

class RtspFlows {
 public:
  RtspFlows() = default;
  explicit RtspFlows(const RtspOptions& options);

  bool empty() const { return servers_.empty() && upstream_.empty(); }
  // Nothing at or behind frame + length is read.
  RtspFrame look_at(const std::uint8_t* frame, std::uint32_t length) const;

 private:
  struct Ends;
  RtspFrame look_closer(const Ends& ends) const;

  ServerPrefixes servers_, upstream_;
  std::vector<std::uint16_t> ports_, upstream_ports_;
};

}  // namespace sluice::function
