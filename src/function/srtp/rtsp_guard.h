// Keeps RTSP from passing the proxy by way of the host. Its frames are handed to the kernel, which has them for its own
// by rules of routing (docs/rtsp.md). Where these are missing or overruled it would forward them, in clear, to the
// server and back. So of what the kernel sends out of the twins, TCP to and from servers has to be the proxy's own:
// its sockets send with the TTL or hop limit 255, and what is forwarded has one less at most, whatever it came with.
//
// What else the kernel says for these sockets (ACKs of a connection in TIME_WAIT, resets) has the host's usual TTL; it
// passes, as it carries nothing and opens no connection.
// To a server of the explicit mode the host may open connections of its own: clients' frames to one never reach it.
//
// Thread-safety: any thread. Cost: some ns for a frame of the host path.
#pragma once

#include <cstdint>

#include "function/srtp/rtsp_flows.h"

namespace sluice::function {

class RtspGuard {
 public:
  RtspGuard() = default;
  explicit RtspGuard(const RtspOptions& options) : flows_(options) {}

  // Whether a frame that the kernel sends is of an RTSP connection and none of the proxy's. Nothing at or behind
  // frame + length is read.
  bool went_past(const std::uint8_t* frame, std::uint32_t length) const;

 private:
  RtspFlows flows_;
};

}  // namespace sluice::function
