// Which UDP could be media of a server of [srtp.rtsp] that speaks in the clear. Such a frame that belongs to no stream
// is one that nobody protects: its stream is not known any more (the gateway has begun anew, or has given up a session
// of which the server still thinks), or never was.
//
// It comes from one of `servers` or a server of the explicit mode, both its ports are 1024 or above (so that DNS, NTP,
// SNMP and QUIC, asked or answered, are none), and it goes to one host. What goes to an address of `listen` is the
// host's, and so is multicast.
//
// Thread-safety: any thread. Cost: two loads and two comparisons for UDP with a low port; else a comparison for each
// prefix of the family (docs/srtp.md).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "function/srtp/media_frame.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function {

// Prefixes as masks.
class ServerPrefixes {
 public:
  ServerPrefixes() = default;
  explicit ServerPrefixes(const std::vector<packet::IpPrefix>& prefixes);

  bool empty() const { return four_.empty() && six_.empty(); }
  // `address`: 4 or 16 bytes, as they lie in a frame.
  bool contains(int family, const std::uint8_t* address) const;

 private:
  struct Four {
    std::uint32_t mask, value;
  };
  struct Six {
    std::array<std::uint64_t, 2> mask, value;
  };
  std::vector<Four> four_;
  std::vector<Six> six_;
};

class ServerMedia {
 public:
  ServerMedia() = default;
  explicit ServerMedia(const RtspOptions& options);

  // Of a frame of UDP that is whole, or the first fragment of one; `later`: of a later one, whose ports are not known.
  bool may_be(const MediaKey& key, bool later = false) const {
    if (servers_.empty() || (!later && (is_low(key.source_port) || is_low(key.destination_port)))) return false;
    return servers_.contains(static_cast<int>(key.family), key.source) && goes_to_a_host(key);
  }

 private:
  static bool is_low(std::uint16_t port) { return packet::be16(port) < 1024; }
  bool goes_to_a_host(const MediaKey& key) const;

  ServerPrefixes servers_;  // none: everything passes
  std::vector<packet::IpAddress> own_;
};

}  // namespace sluice::function
