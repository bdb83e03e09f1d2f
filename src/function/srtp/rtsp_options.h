// [srtp.rtsp]: which flows are RTSP's and how the proxy treats them (docs/rtsp.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "media/srtp/suite.h"
#include "packet/ip_address.h"

namespace sluice::function {

struct RtspOptions {
  std::vector<packet::IpPrefix> servers;  // that speak in the clear
  std::vector<std::uint16_t> ports = {554, 8554};
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  bool accept_plain_profile = true;
  bool accept_clear_rtcp = true;
  std::uint32_t max_connections = 4096;
  std::uint32_t max_streams = 32;                                // of one connection
  std::uint64_t max_rate = 0;                                    // bits a second of all media; 0: no limit
  std::uint64_t default_rate = 0;                                // of a medium whose description names none
  std::uint32_t rate_margin = 25;                                // per cent that a medium may bring beyond its rate
  std::chrono::nanoseconds burst_time{std::chrono::seconds(1)};  // of its rate, at once
  std::chrono::nanoseconds session_timeout{std::chrono::seconds(60)};  // where the server names none
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(10)};
  std::chrono::nanoseconds idle_timeout{std::chrono::seconds(60)};  // of a connection without a stream
  std::uint32_t table = 1554;                                       // the kernel's routing table for local delivery
  std::uint32_t priority = 1554;                                    // of its rules

  bool operator==(const RtspOptions&) const = default;
};

}  // namespace sluice::function
