#include "packet/tcp_reset.h"

#include <algorithm>
#include <cstring>

#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/metadata.h"

namespace sluice::packet {
namespace {

constexpr std::uint8_t hop_limit = 64;

// A whole segment that is no RST itself. Behind a routing header the last destination is another.
bool is_answerable(const std::uint8_t* frame, const Metadata& meta) {
  return meta.is_datagram() && !meta.routed && meta.protocol == protocol_tcp && meta.has_header &&
         (header_at<TcpHeader>(frame, meta.transport).flags & tcp_rst) == 0;
}

TcpHeader reset_between(std::uint16_t source_port, std::uint16_t destination_port) {
  TcpHeader tcp{};
  tcp.source_port = source_port;
  tcp.destination_port = destination_port;
  tcp.data_offset = sizeof(TcpHeader) / 4 << 4;
  tcp.flags = tcp_rst;
  return tcp;
}

TcpHeader to_receiver(const TcpHeader& before) {
  TcpHeader tcp = reset_between(before.source_port, before.destination_port);
  tcp.sequence = before.sequence;
  if ((before.flags & tcp_ack) != 0) {
    tcp.flags |= tcp_ack;
    tcp.acknowledgment = before.acknowledgment;
  }
  return tcp;
}

TcpHeader to_sender(const TcpHeader& before, std::uint32_t payload) {
  TcpHeader tcp = reset_between(before.destination_port, before.source_port);
  if ((before.flags & tcp_ack) != 0) {
    tcp.sequence = before.acknowledgment;
  } else {
    const std::uint32_t marks = ((before.flags & tcp_syn) != 0 ? 1 : 0) + ((before.flags & tcp_fin) != 0 ? 1 : 0);
    tcp.flags |= tcp_ack;
    tcp.acknowledgment = be32(be32(before.sequence) + payload + marks);
  }
  return tcp;
}

}  // namespace

std::uint32_t make_tcp_reset(std::uint8_t* frame, std::uint32_t length, ResetTo to) {
  Metadata meta;
  read_metadata(frame, length, Depth::transport, meta);
  if (!is_answerable(frame, meta)) return 0;
  const std::uint32_t payload = meta.end - meta.payload;
  std::uint8_t* const packet = frame + meta.network;
  const bool back = to == ResetTo::sender;
  const TcpHeader before = header_at<TcpHeader>(frame, meta.transport);
  TcpHeader tcp = back ? to_sender(before, payload) : to_receiver(before);
  if (back) std::swap_ranges(frame, frame + 6, frame + 6);
  std::uint32_t ip_bytes = 0;
  if (meta.family == 4) {
    auto& ip = header_at<Ipv4Header>(packet, 0);
    ip_bytes = sizeof ip;
    const auto total = static_cast<std::uint16_t>(sizeof ip + sizeof tcp);
    const std::uint32_t source = back ? ip.destination : ip.source, destination = back ? ip.source : ip.destination;
    ip = {0x45, 0, be16(total), 0, be16(ipv4_dont_fragment), hop_limit, protocol_tcp, 0, source, destination};
    ip.checksum = ipv4_header_checksum(ip);
    tcp.checksum = transport_checksum(ip, &tcp, sizeof tcp);
  } else {
    auto& ip = header_at<Ipv6Header>(packet, 0);
    ip_bytes = sizeof ip;
    ip.version_class_flow = be32(0x60000000);
    ip.payload_length = be16(sizeof tcp);
    ip.next_header = protocol_tcp;
    ip.hop_limit = hop_limit;
    if (back) std::swap_ranges(ip.source, ip.source + sizeof ip.source, ip.destination);
    tcp.checksum = transport_checksum(ip, protocol_tcp, &tcp, sizeof tcp);
  }
  std::memcpy(packet + ip_bytes, &tcp, sizeof tcp);
  return meta.network + ip_bytes + static_cast<std::uint32_t>(sizeof tcp);
}

}  // namespace sluice::packet
