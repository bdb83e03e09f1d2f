// [srtp.rtsp]: which flows are RTSP's and how the proxy treats them (docs/rtsp.md).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "function/srtp/rtsp/medium_deadlines.h"
#include "media/srtp/suite.h"
#include "packet/ip_address.h"

namespace sluice::function {

// A server of the explicit mode: the first one whose conditions a client's first URI meets, of the family that the
// client came by.
struct RtspServer {
  packet::IpAddress address;
  std::uint16_t port = 554;
  std::string name;  // the URI's host, without case; empty: any
  std::string path;  // what its path begins with, up to a '/'; empty: any

  bool operator==(const RtspServer&) const = default;
};

// The TTL or hop limit of all that the proxy's sockets send. No frame that a kernel forwards has it (RFC 5082's
// thought).
inline constexpr std::uint8_t proxy_ttl = 255;

struct RtspOptions {
  std::vector<packet::IpPrefix> servers;  // that speak in the clear; none: no client is proxied transparently
  // Explicit mode: the host's addresses that clients open, their servers, and the ports of UDP at which the proxy's own
  // addresses take and send media: [first, last], pairs with an even port of RTP. Without addresses there is none.
  std::vector<packet::IpAddress> listen;
  std::vector<RtspServer> upstream;
  std::uint16_t first_media_port = 20000, last_media_port = 29999;
  std::vector<std::uint16_t> ports = {554, 8554};
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  bool accept_plain_profile = true;
  bool accept_clear_rtcp = true;
  bool drops_unprotected = true;  // what could be media of servers, and of no stream (server_media.h)
  bool check_ingress = true;      // media come by the port that their side's RTSP goes by
  std::uint32_t max_connections = 4096;
  std::uint32_t max_connections_per_client = 1024;  // address; of IPv6 a /64
  std::uint32_t max_streams = 32;                   // of one connection
  std::uint32_t max_ssrcs = 64;                     // of one medium, that its server may have had
  std::uint64_t max_rate = 0;                       // bits a second of all media; 0: no limit
  std::uint64_t default_rate = 0;                   // of a medium whose description names none
  std::uint32_t rate_margin = 25;                   // per cent that a medium may bring beyond its rate
  bool measured = false;  // media that have default_rate, and hold later what they bring (measured_rate.h)
  std::chrono::nanoseconds measure_time{std::chrono::seconds(10)};
  std::chrono::nanoseconds burst_time{std::chrono::seconds(1)};        // of its rate, at once
  std::chrono::nanoseconds session_timeout{std::chrono::seconds(60)};  // where the server names none
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(10)};
  std::chrono::nanoseconds answer_timeout{std::chrono::seconds(30)};  // of a server, for each request
  std::chrono::nanoseconds idle_timeout{std::chrono::seconds(60)};    // of a connection without a stream
  std::uint32_t table = 1554;                                         // the kernel's routing table for local delivery
  std::uint32_t priority = 1554;                                      // of its rules
  rtsp::MediumDeadlines deadlines = {};                               // without the engine's

  // Their hosts.
  std::vector<packet::IpPrefix> upstream_prefixes() const {
    std::vector<packet::IpPrefix> all;
    for (const RtspServer& server : upstream) all.push_back(packet::IpPrefix::host(server.address));
    return all;
  }
  bool is_explicit(const packet::IpAddress& server) const { return std::ranges::find(listen, server) != listen.end(); }
  bool operator==(const RtspOptions&) const = default;
};

}  // namespace sluice::function
