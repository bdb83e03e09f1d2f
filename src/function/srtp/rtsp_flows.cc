#include "function/srtp/rtsp_flows.h"

#include <algorithm>

namespace sluice::function {

RtspFrame RtspFlows::look_at(const std::uint8_t* frame, std::uint32_t length) const {
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  return meta.tags == 0 ? look_at(frame, meta) : RtspFrame::none;
}

RtspFrame RtspFlows::look_at(const std::uint8_t* frame, const packet::Metadata& meta) const {
  if (meta.family == 0) return RtspFrame::none;
  const bool fragment = meta.fragment();
  if (meta.protocol != packet::protocol_tcp && !(fragment && meta.fragment_protocol == packet::protocol_tcp)) {
    return RtspFrame::none;
  }
  if (!fragment && !meta.has_ports) return RtspFrame::none;
  return look_closer(meta, meta.source(frame), meta.destination(frame));
}

RtspFlows::RtspFlows(const RtspOptions& options) : servers_(options.servers), ports_(options.ports) {
  if (!options.drops_unprotected) return;
  upstream_ = ServerPrefixes(options.upstream_prefixes());
  upstream_ports_ = ports_;
  for (const RtspServer& server : options.upstream) upstream_ports_.push_back(server.port);
}

RtspFrame RtspFlows::look_closer(const packet::Metadata& meta, const std::uint8_t* source,
                                 const std::uint8_t* destination) const {
  const auto concerns = [&](const ServerPrefixes& servers) {
    return servers.contains(meta.family, source) || servers.contains(meta.family, destination);
  };
  if (meta.fragment()) return concerns(servers_) || concerns(upstream_) ? RtspFrame::fragment : RtspFrame::none;
  const std::uint16_t from = meta.source_port, to = meta.destination_port;
  const auto at = [&](const std::vector<std::uint16_t>& ports, std::uint16_t port, const ServerPrefixes& servers,
                      const std::uint8_t* address) {
    return std::ranges::find(ports, port) != ports.end() && servers.contains(meta.family, address);
  };
  if (at(ports_, to, servers_, destination) || at(ports_, from, servers_, source)) return RtspFrame::rtsp;
  if (upstream_.empty()) return RtspFrame::none;
  if (at(upstream_ports_, to, upstream_, destination)) return RtspFrame::past;
  return at(upstream_ports_, from, upstream_, source) ? RtspFrame::rtsp : RtspFrame::none;
}

}  // namespace sluice::function
