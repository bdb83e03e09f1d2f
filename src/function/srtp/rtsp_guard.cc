#include "function/srtp/rtsp_guard.h"

#include "packet/headers.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t tag_bytes = sizeof(packet::VlanHeader);
constexpr std::uint32_t ipv6_header = 40, tcp_least = 20;
constexpr std::uint8_t fin = 0x01, syn = 0x02;

std::uint32_t be16_at(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(bytes[0] << 8 | bytes[1]);
}

bool has_tag(const std::uint8_t* frame, std::uint32_t length) {
  return length >= sizeof(packet::EthernetHeader) + tag_bytes &&
         packet::is_vlan_tag(static_cast<std::uint16_t>(be16_at(frame + 12)));
}

// Neither data nor the begin or the end of a connection. `frame`: whole TCP of IPv4 or IPv6, by RtspFlows.
bool says_nothing(const std::uint8_t* frame, std::uint32_t length) {
  const std::uint8_t* const ip = frame + sizeof(packet::EthernetHeader);
  const std::uint32_t room = length - static_cast<std::uint32_t>(sizeof(packet::EthernetHeader));
  const bool four = be16_at(frame + 12) == packet::ethertype_ipv4;
  const std::uint32_t header = four ? (ip[0] & 0xfU) * 4 : ipv6_header;
  const std::uint32_t total = four ? be16_at(ip + 2) : ipv6_header + be16_at(ip + 4);
  if (header + tcp_least > room) return false;
  const std::uint8_t* const tcp = ip + header;
  return (tcp[13] & (fin | syn)) == 0 && total == header + (tcp[12] >> 4) * 4U;
}

}  // namespace

// A tag lies before the type of what it is on: with the frame begun so much later the rest is where it is without one.
bool RtspGuard::went_past(const std::uint8_t* frame, std::uint32_t length) const {
  if (flows_.empty()) return false;
  for (unsigned tags = 0; tags < packet::most_vlan_tags && has_tag(frame, length); ++tags) {
    frame += tag_bytes;
    length -= tag_bytes;
  }
  const RtspFrame what = flows_.look_at(frame, length);
  if (what == RtspFrame::none || what == RtspFrame::past) return false;
  const std::uint8_t* const ip = frame + sizeof(packet::EthernetHeader);
  const bool four = be16_at(frame + 12) == packet::ethertype_ipv4;
  if (ip[four ? 8 : 7] == proxy_ttl) return false;
  return what == RtspFrame::fragment || !says_nothing(frame, length);
}

}  // namespace sluice::function
