// Which frames are of RTSP connections that the proxy terminates: TCP to a server of [srtp.rtsp] at one of its ports,
// or from one. Of the explicit mode's servers (at any of their ports and `ports`) what comes from them is, for the
// proxy's own connections are among it, and what goes to them is not: there somebody opens a server past the proxy.
// With `unprotected = "pass"` these are nothing of the kind.
//
// Thread-safety: any thread. Cost: that of packet/metadata.h, and of TCP a look into some prefixes.
#pragma once

#include <cstdint>
#include <vector>

#include "function/srtp/rtsp_options.h"
#include "function/srtp/server_media.h"
#include "packet/metadata.h"

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
  // Without VLAN tags; others are none. Nothing at or behind frame + length is read.
  RtspFrame look_at(const std::uint8_t* frame, std::uint32_t length) const;
  // `meta`: of this frame, to the depth `transport`. With any tags.
  RtspFrame look_at(const std::uint8_t* frame, const packet::Metadata& meta) const;

 private:
  RtspFrame look_closer(const packet::Metadata& meta, const std::uint8_t* source,
                        const std::uint8_t* destination) const;

  ServerPrefixes servers_, upstream_;
  std::vector<std::uint16_t> ports_, upstream_ports_;
};

}  // namespace sluice::function
