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

// Of what is behind these IP headers, whatever is inside of it.
ChecksumState check_outermost(const std::uint8_t* frame, const HeaderPlaces& places) {
  if (places.routed) return ChecksumState::none;
  const std::size_t bytes = places.end - places.transport;
  if (places.protocol == protocol_udp) {
    if (bytes < sizeof(UdpHeader)) return ChecksumState::none;
    if (header_at<UdpHeader>(frame, places.transport).checksum == 0) return ChecksumState::none;
  } else if (places.protocol != protocol_tcp || bytes < sizeof(TcpHeader)) {
    return ChecksumState::none;
  }
  return sums_up(frame, places) ? ChecksumState::right : ChecksumState::wrong;
}

// Where the frame inside begins; 0: this is no VXLAN datagram.
std::size_t inside_of(const std::uint8_t* frame, const HeaderPlaces& places) {
  const std::size_t inner = places.transport + sizeof(UdpHeader) + vxlan_header_bytes;
  if (places.routed || places.protocol != protocol_udp || inner >= places.end) return 0;
  return be16(header_at<UdpHeader>(frame, places.transport).destination_port) == vxlan_port ? inner : 0;
}

}  // namespace

ChecksumState check_transport(const std::uint8_t* frame, std::size_t length) {
  const auto places = find_headers(frame, length);
  if (!places) return ChecksumState::none;
  const ChecksumState outer = check_outermost(frame, *places);
  const std::size_t inner = outer == ChecksumState::wrong ? 0 : inside_of(frame, *places);
  if (inner == 0) return outer;
  const auto inside = find_headers(frame + inner, places->end - inner);
  const ChecksumState within = inside ? check_outermost(frame + inner, *inside) : ChecksumState::none;
  return within == ChecksumState::none ? outer : within;
}

}  // namespace sluice::packet
