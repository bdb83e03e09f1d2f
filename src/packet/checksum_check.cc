#include "packet/checksum_check.h"

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/offload.h"

namespace sluice::packet {
namespace {

bool sums_up(const std::uint8_t* frame, const Metadata& meta) {
  const std::size_t bytes = meta.end - meta.transport;
  std::uint64_t sum = std::uint64_t{be16(meta.protocol)} + be16(static_cast<std::uint16_t>(bytes));
  if (meta.family == 4) {
    const auto& ip = header_at<Ipv4Header>(frame, meta.network);
    sum += std::uint64_t{ip.source} + ip.destination;
  } else {
    const auto& ip = header_at<Ipv6Header>(frame, meta.network);
    sum = partial_sum(ip.source, sizeof ip.source + sizeof ip.destination, sum);
  }
  return fold_sum(partial_sum(frame + meta.transport, bytes, sum)) == 0xffff;
}

// Of what is behind these IP headers, whatever is inside of it.
ChecksumState check_outermost(const std::uint8_t* frame, const Metadata& meta) {
  if (meta.routed) return ChecksumState::none;
  const std::size_t bytes = meta.end - meta.transport;
  if (meta.protocol == protocol_udp) {
    if (bytes < sizeof(UdpHeader)) return ChecksumState::none;
    if (header_at<UdpHeader>(frame, meta.transport).checksum == 0) return ChecksumState::none;
  } else if (meta.protocol != protocol_tcp || bytes < sizeof(TcpHeader)) {
    return ChecksumState::none;
  }
  return sums_up(frame, meta) ? ChecksumState::right : ChecksumState::wrong;
}

}  // namespace

ChecksumState check_transport(const std::uint8_t* frame, std::size_t length) {
  const auto meta = find_headers(frame, length);
  if (!meta) return ChecksumState::none;
  const ChecksumState outer = check_outermost(frame, *meta);
  if (outer == ChecksumState::wrong || meta->routed) return outer;
  Metadata inner;
  (void)read_inner(frame, static_cast<std::uint32_t>(length), *meta, inner);
  const ChecksumState within = inner.is_datagram() ? check_outermost(frame, inner) : ChecksumState::none;
  return within == ChecksumState::none ? outer : within;
}

}  // namespace sluice::packet
