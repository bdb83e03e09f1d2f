#include "packet/checksum_check.h"

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/offload.h"

namespace sluice::packet {
namespace {

constexpr std::uint16_t vxlan_port = 4789;
constexpr std::size_t vxlan_header_bytes = 8;

bool sums_up(const std::uint8_t* frame, const HeaderPlaces& places) {
  const std::size_t bytes = places.end - places.transport;
  std::uint64_t sum = std::uint64_t{be16(places.protocol)} + be16(static_cast<std::uint16_t>(bytes));
  if (places.family == 4) {
    const auto& ip = header_at<Ipv4Header>(frame, places.network);
    sum += std::uint64_t{ip.source} + ip.destination;
  } else {
    const auto& ip = header_at<Ipv6Header>(frame, places.network);
    sum = partial_sum(ip.source, sizeof ip.source + sizeof ip.destination, sum);
  }
  return fold_sum(partial_sum(frame + places.transport, bytes, sum)) == 0xffff;
}

ChecksumState check_udp(const std::uint8_t* frame, const HeaderPlaces& places) {
  const auto& udp = header_at<UdpHeader>(frame, places.transport);
  const bool has_one = udp.checksum != 0;
  const bool right = !has_one || sums_up(frame, places);
  const std::size_t inner = places.transport + sizeof(UdpHeader) + vxlan_header_bytes;
  if (right && be16(udp.destination_port) == vxlan_port && inner < places.end) {
    const auto inside = find_headers(frame + inner, places.end - inner);
    if (inside && (inside->protocol == protocol_tcp || inside->protocol == protocol_udp)) {
      const ChecksumState state = check_transport(frame + inner, places.end - inner);
      if (state != ChecksumState::none) return state;
    }
  }
  return !has_one ? ChecksumState::none : right ? ChecksumState::right : ChecksumState::wrong;
}

}  // namespace

ChecksumState check_transport(const std::uint8_t* frame, std::size_t length) {
  const auto places = find_headers(frame, length);
  if (!places || places->routed) return ChecksumState::none;
  const std::size_t bytes = places->end - places->transport;
  if (places->protocol == protocol_udp && bytes >= sizeof(UdpHeader)) return check_udp(frame, *places);
  if (places->protocol != protocol_tcp || bytes < sizeof(TcpHeader)) return ChecksumState::none;
  return sums_up(frame, *places) ? ChecksumState::right : ChecksumState::wrong;
}

}  // namespace sluice::packet
