#include "packet/offload.h"

#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/vxlan.h"

namespace sluice::packet {
namespace {

constexpr std::size_t tcp_checksum_offset = 16;
constexpr std::size_t udp_checksum_offset = 6;
constexpr std::size_t sctp_checksum_offset = 8;
constexpr std::size_t sctp_header_bytes = 12;
constexpr std::uint8_t tcp_cwr = 0x80;

std::uint64_t pseudo_header_sum(const std::uint8_t* frame, const Metadata& places) {
  const std::size_t bytes = places.end - places.transport;
  std::uint64_t sum = be16(places.protocol);
  if (places.family == 4) {
    const auto& ip = header_at<Ipv4Header>(frame, places.network);
    return sum + std::uint64_t{ip.source} + ip.destination + be16(static_cast<std::uint16_t>(bytes));
  }
  const auto& ip = header_at<Ipv6Header>(frame, places.network);
  sum += be32(static_cast<std::uint32_t>(bytes));
  return partial_sum(ip.source, sizeof ip.source + sizeof ip.destination, sum);
}

// RFC 9260, appendix A: reflected, and stored with its lowest byte first.
std::uint32_t crc32c(const std::uint8_t* bytes, std::size_t length) {
  static constexpr auto table = [] {
    struct Table {
      std::uint32_t of[256];
    } made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0);
      made.of[i] = value;
    }
    return made;
  }();
  std::uint32_t crc = 0xffffffff;
  for (std::size_t i = 0; i < length; ++i) crc = (crc >> 8) ^ table.of[(crc ^ bytes[i]) & 0xff];
  return ~crc;
}

void finish_sctp(std::uint8_t* packet, std::size_t length) {
  std::memset(packet + sctp_checksum_offset, 0, sizeof(std::uint32_t));
  const std::uint32_t crc = crc32c(packet, length);
  std::memcpy(packet + sctp_checksum_offset, &crc, sizeof crc);
}

// Of TCP and UDP a sum of 0 goes out as 0xffff, which is the same to who checks it: to UDP 0 means that there is none
// (RFC 768), and Linux does the same for all.
std::uint16_t never_zero(std::uint16_t checksum) {
  return checksum == 0 ? std::uint16_t{0xffff} : checksum;
}

// Added to a sum that has the word it takes it out: ones' complement.
std::uint64_t without(std::uint16_t word) {
  return static_cast<std::uint16_t>(~word);
}

}  // namespace

std::optional<Metadata> find_headers(const std::uint8_t* frame, std::size_t length) {
  std::optional<Metadata> meta(std::in_place);
  read_metadata(frame, static_cast<std::uint32_t>(length), Depth::transport, *meta);
  if (!meta->is_datagram()) meta.reset();
  return meta;
}

bool finish_checksum(std::uint8_t* frame, std::size_t length, std::size_t start, std::size_t offset) {
  if (start > length || offset + sizeof(std::uint16_t) > length - start) {
    return false;
  }
  if (offset == sctp_checksum_offset && length - start >= sctp_header_bytes) {
    const auto places = find_headers(frame, length);
    if (places && places->protocol == protocol_sctp && places->transport == start) {
      finish_sctp(frame + start, length - start);
      return true;
    }
  }
  const std::uint16_t checksum = never_zero(internet_checksum(frame + start, length - start));
  std::memcpy(frame + start + offset, &checksum, sizeof checksum);
  return true;
}

bool finish_marked_checksum(std::uint8_t* frame, std::size_t length) {
  const auto places = find_headers(frame, length);
  if (!places || places->routed) {
    return false;
  }
  const std::size_t bytes = places->end - places->transport;
  std::size_t offset = tcp_checksum_offset;
  std::size_t least = sizeof(TcpHeader);
  switch (places->protocol) {
    case protocol_tcp:
      break;
    case protocol_udp:
      offset = udp_checksum_offset;
      least = sizeof(UdpHeader);
      break;
    case protocol_sctp: {
      std::uint32_t crc = 0;
      if (bytes < sctp_header_bytes) {
        return false;
      }
      std::memcpy(&crc, frame + places->transport + sctp_checksum_offset, sizeof crc);
      if (crc == 0) {
        finish_sctp(frame + places->transport, bytes);
      }
      return crc == 0;
    }
    default:
      return false;
  }
  if (bytes < least) {
    return false;
  }
  std::uint16_t there;
  std::memcpy(&there, frame + places->transport + offset, sizeof there);
  return there == fold_sum(pseudo_header_sum(frame, *places)) &&
         finish_checksum(frame, places->end, places->transport, offset);
}

namespace {

// Of the frame in a VXLAN tunnel, whatever its port.
std::optional<Metadata> find_headers_in_vxlan(const std::uint8_t* frame, const Metadata& outer) {
  const std::uint32_t at = outer.transport + std::uint32_t{sizeof(UdpHeader) + sizeof(VxlanHeader)};
  if (at >= outer.end) return std::nullopt;
  std::optional<Metadata> inner(std::in_place);
  read_frame_metadata(frame, at, outer.end, Depth::transport, *inner);
  if (!inner->is_datagram()) inner.reset();
  return inner;
}

}  // namespace

bool Segmenter::begin(const std::uint8_t* frame, std::size_t length, Segmentation kind, std::size_t payload_bytes,
                      std::size_t checksum_start) {
  at_ = end_ = 0;
  auto places = find_headers(frame, length);
  outer_.reset();
  if (places && places->transport != checksum_start && places->protocol == protocol_udp) {
    outer_ = places;
    places = find_headers_in_vxlan(frame, *outer_);
  }
  const std::uint8_t protocol = kind == Segmentation::tcp ? protocol_tcp : protocol_udp;
  const std::size_t least = kind == Segmentation::tcp ? sizeof(TcpHeader) : sizeof(UdpHeader);
  if (!places || places->protocol != protocol || places->transport != checksum_start || payload_bytes == 0 ||
      places->transport + least > places->end) {
    return false;
  }
  std::size_t header = least;
  if (kind == Segmentation::tcp) {
    header = (header_at<TcpHeader>(frame, places->transport).data_offset >> 4) * std::size_t{4};
  }
  if (header < least || places->transport + header >= places->end) {
    return false;
  }
  frame_ = frame;
  places_ = *places;
  kind_ = kind;
  headers_ = places_.transport + header;
  payload_bytes_ = payload_bytes;
  at_ = headers_;
  end_ = places_.end;
  index_ = 0;
  sum_headers();
  return true;
}

// What of them is the same in every segment. A segment's own fields are added to it, and its headers only written: one
// that is read back at once waits for the cache to fetch a buffer that nobody has touched for long.
void Segmenter::sum_headers() {
  network_sum_ = 0;
  if (places_.family == 4) {
    const auto& ip = header_at<Ipv4Header>(frame_, places_.network);
    network_sum_ = partial_sum(&ip, places_.transport - places_.network) + without(ip.total_length) + without(ip.id) +
                   without(ip.checksum);
  }
  // The pseudo-header's sum is in the checksum's place, made with the length of the whole: so an IPv6 routing header,
  // whose last destination it has, needs no look.
  const std::uint8_t* const transport = frame_ + places_.transport;
  const auto whole = be16(static_cast<std::uint16_t>(places_.end - places_.transport));
  transport_sum_ = partial_sum(transport, headers_ - places_.transport) + without(whole);
  if (kind_ == Segmentation::udp) {
    transport_sum_ += without(header_at<UdpHeader>(transport, 0).length);
  }
}

void Segmenter::write_network(std::uint8_t* to, std::size_t payload) const {
  const std::size_t packet = headers_ - places_.network + payload;
  if (places_.family == 6) {
    header_at<Ipv6Header>(to, places_.network).payload_length =
        be16(static_cast<std::uint16_t>(packet - sizeof(Ipv6Header)));
    return;
  }
  const std::uint16_t length = be16(static_cast<std::uint16_t>(packet));
  const std::uint16_t id =
      be16(static_cast<std::uint16_t>(be16(header_at<Ipv4Header>(frame_, places_.network).id) + index_));
  auto& ip = header_at<Ipv4Header>(to, places_.network);
  ip.total_length = length;
  ip.id = id;
  ip.checksum = finish_sum(network_sum_ + length + id);
}

void Segmenter::write_transport(std::uint8_t* to, std::size_t payload) const {
  std::uint8_t* const segment = to + places_.transport;
  const std::uint16_t length = be16(static_cast<std::uint16_t>(headers_ - places_.transport + payload));
  std::uint64_t sum = partial_sum(frame_ + at_, payload, transport_sum_ + length);
  std::size_t offset = udp_checksum_offset;
  if (kind_ == Segmentation::udp) {
    header_at<UdpHeader>(segment, 0).length = length;
    sum += length;
  } else {
    offset = tcp_checksum_offset;
    const auto& whole = header_at<TcpHeader>(frame_, places_.transport);
    const std::uint32_t sequence = be32(static_cast<std::uint32_t>(be32(whole.sequence) + (at_ - headers_)));
    const bool last = at_ + payload == end_;
    const unsigned gone = whole.flags & ((last ? 0U : tcp_fin | tcp_psh) | (index_ == 0 ? 0U : tcp_cwr));
    auto& tcp = header_at<TcpHeader>(segment, 0);
    tcp.sequence = sequence;
    tcp.flags = static_cast<std::uint8_t>(whole.flags & ~gone);
    // The flags are the low byte of their word.
    sum += std::uint64_t{~whole.sequence} + sequence + without(be16(static_cast<std::uint16_t>(gone)));
  }
  const std::uint16_t checksum = never_zero(finish_sum(sum));
  std::memcpy(segment + offset, &checksum, sizeof checksum);
}

void Segmenter::write_outer(std::uint8_t* to, std::size_t payload) const {
  const std::size_t packet = headers_ - outer_->network + payload;
  const std::size_t datagram = headers_ - outer_->transport + payload;
  auto& udp = header_at<UdpHeader>(to, outer_->transport);
  const bool has_checksum = udp.checksum != 0;
  udp.length = be16(static_cast<std::uint16_t>(datagram));
  udp.checksum = 0;
  if (outer_->family == 6) {
    auto& ip = header_at<Ipv6Header>(to, outer_->network);
    ip.payload_length = be16(static_cast<std::uint16_t>(packet - sizeof(Ipv6Header)));
    if (has_checksum) udp.checksum = transport_checksum(ip, protocol_udp, &udp, datagram);
    return;
  }
  auto& ip = header_at<Ipv4Header>(to, outer_->network);
  ip.total_length = be16(static_cast<std::uint16_t>(packet));
  ip.id = be16(static_cast<std::uint16_t>(be16(ip.id) + index_));
  ip.checksum = ipv4_header_checksum(ip);
  if (has_checksum) udp.checksum = transport_checksum(ip, &udp, datagram);
}

void Segmenter::write_next(std::uint8_t* to) {
  const std::size_t payload = next_payload();
  std::memcpy(to, frame_, headers_);
  std::memcpy(to + headers_, frame_ + at_, payload);
  write_network(to, payload);
  write_transport(to, payload);
  if (outer_) write_outer(to, payload);
  at_ += payload;
  ++index_;
}

}  // namespace sluice::packet
