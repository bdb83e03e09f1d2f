#include "function/srtp/rtsp_flows.h"

#include <algorithm>
#include <cstring>

#include "packet/headers.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t l3 = sizeof(packet::EthernetHeader);
constexpr std::uint32_t ipv4_least = 20, ipv6_size = 40, ports_size = 4;
constexpr std::uint32_t ipv6_fragment_size = 8;
constexpr std::uint16_t fragment_bits = 0x3fff;  // more to come, or an offset

std::uint16_t be16_at(const std::uint8_t* bytes) {
  return static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
}

}  // namespace

struct RtspFlows::Ends {
  int family;
  const std::uint8_t *source, *destination;
  const std::uint8_t* ports;  // null: a fragment
};

RtspFrame RtspFlows::look_at(const std::uint8_t* frame, std::uint32_t length) const {
  if (length < l3 + ipv4_least) return RtspFrame::none;
  const std::uint8_t* const ip = frame + l3;
  const std::uint16_t type = be16_at(frame + 12);
  if (type == packet::ethertype_ipv4) {
    if (ip[9] != packet::protocol_tcp) return RtspFrame::none;
    const bool fragment = (be16_at(ip + 6) & fragment_bits) != 0;
    const std::uint32_t header = (ip[0] & 0xfU) * 4;
    if (header < ipv4_least || (!fragment && length < l3 + header + ports_size)) return RtspFrame::none;
    return look_closer({4, ip + 12, ip + 16, fragment ? nullptr : ip + header});
  }
  if (type != packet::ethertype_ipv6 || length < l3 + ipv6_size + ports_size) return RtspFrame::none;
  if (ip[6] == packet::protocol_tcp) return look_closer({6, ip + 8, ip + 24, ip + ipv6_size});
  const bool tcp_fragment = ip[6] == packet::protocol_fragment && length >= l3 + ipv6_size + ipv6_fragment_size &&
                            ip[ipv6_size] == packet::protocol_tcp;
  return tcp_fragment ? look_closer({6, ip + 8, ip + 24, nullptr}) : RtspFrame::none;
}

RtspFlows::RtspFlows(const RtspOptions& options) : servers_(options.servers), ports_(options.ports) {
  if (!options.drops_unprotected) return;
  upstream_ = ServerPrefixes(options.upstream_prefixes());
  upstream_ports_ = ports_;
  for (const RtspServer& server : options.upstream) upstream_ports_.push_back(server.port);
}

RtspFrame RtspFlows::look_closer(const Ends& ends) const {
  const auto concerns = [&](const ServerPrefixes& servers) {
    return servers.contains(ends.family, ends.source) || servers.contains(ends.family, ends.destination);
  };
  if (ends.ports == nullptr) return concerns(servers_) || concerns(upstream_) ? RtspFrame::fragment : RtspFrame::none;
  const std::uint16_t from = be16_at(ends.ports), to = be16_at(ends.ports + 2);
  const auto at = [&](const std::vector<std::uint16_t>& ports, std::uint16_t port, const ServerPrefixes& servers,
                      const std::uint8_t* address) {
    return std::ranges::find(ports, port) != ports.end() && servers.contains(ends.family, address);
  };
  if (at(ports_, to, servers_, ends.destination) || at(ports_, from, servers_, ends.source)) return RtspFrame::rtsp;
  if (upstream_.empty()) return RtspFrame::none;
  if (at(upstream_ports_, to, upstream_, ends.destination)) return RtspFrame::past;
  return at(upstream_ports_, from, upstream_, ends.source) ? RtspFrame::rtsp : RtspFrame::none;
}

}  // namespace sluice::function
