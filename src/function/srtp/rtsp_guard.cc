#include "function/srtp/rtsp_guard.h"

#include <cstddef>

#include "packet/headers.h"

namespace sluice::function {
namespace {

// Neither data nor the begin or the end of a connection. `meta`: of whole TCP.
bool says_nothing(const std::uint8_t* frame, const packet::Metadata& meta) {
  if (!meta.has_header || !meta.is_whole_packet()) return false;
  const std::uint8_t flags = packet::header_at<packet::TcpHeader>(frame, meta.transport).flags;
  return (flags & (packet::tcp_fin | packet::tcp_syn)) == 0 && meta.payload == meta.end;
}

}  // namespace

bool RtspGuard::went_past(const std::uint8_t* frame, std::uint32_t length) const {
  if (flows_.empty()) return false;
  packet::Metadata meta;
  packet::read_metadata(frame, length, packet::Depth::transport, meta);
  const RtspFrame what = flows_.look_at(frame, meta);
  if (what == RtspFrame::none || what == RtspFrame::past) return false;
  const std::uint8_t* const ip = frame + meta.network;
  const bool four = meta.family == 4;
  if (ip[four ? offsetof(packet::Ipv4Header, ttl) : offsetof(packet::Ipv6Header, hop_limit)] == proxy_ttl) return false;
  return what == RtspFrame::fragment || !says_nothing(frame, meta);
}

}  // namespace sluice::function
