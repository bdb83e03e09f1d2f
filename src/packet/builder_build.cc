// PacketBuilder::build(): from the collected fields to bytes, layer by layer.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

template <typename Header>
void append_header(Bytes& to, const Header& header) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&header);
  to.insert(to.end(), bytes, bytes + sizeof header);
}

void append(Bytes& to, const Bytes& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::uint32_t ipv4_word(const IpAddress& address) {
  return be32(address.v4_host_order());
}

// Where the checksum of a transport header lies; 0: it has none.
std::size_t checksum_offset(std::uint8_t protocol) {
  switch (protocol) {
    case protocol_udp:
      return offsetof(UdpHeader, checksum);
    case protocol_tcp:
      return offsetof(TcpHeader, checksum);
    case protocol_icmp:
    case protocol_icmpv6:
      return offsetof(IcmpHeader, checksum);
    default:
      return 0;
  }
}

}  // namespace

Bytes PacketBuilder::build() const {
  Bytes frame = link_header();
  switch (network_) {
    case Network::none:
      append(frame, payload_);
      break;
    case Network::arp:
      append(frame, arp_packet());
      break;
    case Network::ipv4:
      append(frame, ipv4_packet());
      break;
    case Network::ipv6:
      append(frame, ipv6_packet());
      break;
  }
  frame.resize(std::max(frame.size(), pad_to_));
  frame.resize(std::min(frame.size(), cut_to_));
  return frame;
}

std::uint16_t PacketBuilder::network_ethertype() const {
  switch (network_) {
    case Network::arp:
      return ethertype_arp;
    case Network::ipv4:
      return ethertype_ipv4;
    case Network::ipv6:
      return ethertype_ipv6;
    default:
      return 0x88b5;  // IEEE 802 local experimental
  }
}

Bytes PacketBuilder::link_header() const {
  EthernetHeader ethernet{};
  std::ranges::copy(destination_mac_.bytes, ethernet.destination);
  std::ranges::copy(source_mac_.bytes, ethernet.source);
  const std::uint16_t inner = be16(ethertype_.value_or(network_ethertype()));
  ethernet.ethertype = vlans_.empty() ? inner : be16(vlans_.size() == 1 ? ethertype_vlan : ethertype_qinq);
  Bytes bytes;
  append_header(bytes, ethernet);
  for (std::size_t i = 0; i < vlans_.size(); ++i) {
    const bool last = i + 1 == vlans_.size();
    append_header(bytes, VlanHeader{be16(vlans_[i]), last ? inner : be16(ethertype_vlan)});
  }
  return bytes;
}

Bytes PacketBuilder::arp_packet() const {
  ArpHeader arp{};
  arp.hardware_type = be16(1);
  arp.protocol_type = be16(ethertype_ipv4);
  arp.hardware_length = 6;
  arp.protocol_length = 4;
  arp.operation = be16(arp_operation_);
  std::ranges::copy(source_mac_.bytes, arp.sender_mac);
  arp.sender_ip = ipv4_word(source_);
  if (arp_operation_ != 1) {
    std::ranges::copy(destination_mac_.bytes, arp.target_mac);
  }
  arp.target_ip = ipv4_word(destination_);
  Bytes bytes;
  append_header(bytes, arp);
  return bytes;
}

// The transport header and the payload, or the payload alone; the checksum is computed over what is here.
Bytes PacketBuilder::segment() const {
  if (fragment_ && fragment_->offset != 0) {
    return payload_;
  }
  Bytes bytes = transport_;
  append(bytes, payload_);
  if (transport_.empty()) {
    return bytes;
  }
  if (protocol_ == protocol_udp) {
    header_at<UdpHeader>(bytes.data(), 0).length = be16(udp_length_.value_or(static_cast<std::uint16_t>(bytes.size())));
  }
  std::uint16_t checksum = 0;
  if (transport_checksum_) {
    checksum = be16(*transport_checksum_);
  } else if (protocol_ == protocol_icmp) {
    checksum = internet_checksum(bytes.data(), bytes.size());
  } else if (network_ == Network::ipv4) {
    Ipv4Header ip{};
    ip.protocol = protocol_;
    ip.source = ipv4_word(source_);
    ip.destination = ipv4_word(destination_);
    checksum = packet::transport_checksum(ip, bytes.data(), bytes.size());
  } else {
    Ipv6Header ip{};
    std::ranges::copy(source_.bytes, ip.source);
    std::ranges::copy(destination_.bytes, ip.destination);
    checksum = packet::transport_checksum(ip, protocol_, bytes.data(), bytes.size());
  }
  std::memcpy(bytes.data() + checksum_offset(protocol_), &checksum, sizeof checksum);
  return bytes;
}

Bytes PacketBuilder::ipv4_packet() const {
  const Bytes body = segment();
  const std::size_t header_length = sizeof(Ipv4Header) + options_.size();
  std::uint16_t fragment = dont_fragment_ ? ipv4_dont_fragment : 0;
  if (fragment_) {
    fragment |= static_cast<std::uint16_t>(fragment_->offset / 8 | (fragment_->more ? ipv4_more_fragments : 0));
  }
  Ipv4Header header{};
  header.version_ihl = static_cast<std::uint8_t>(ip_version_.value_or(4) << 4 | ihl_.value_or(header_length / 4));
  header.tos = tos_;
  header.total_length = be16(ip_length_.value_or(static_cast<std::uint16_t>(header_length + body.size())));
  header.id = be16(static_cast<std::uint16_t>(id_));
  header.fragment = be16(fragment);
  header.ttl = ttl_;
  header.protocol = protocol_;
  header.source = ipv4_word(source_);
  header.destination = ipv4_word(destination_);
  Bytes packet;
  append_header(packet, header);
  append(packet, options_);
  header_at<Ipv4Header>(packet.data(), 0).checksum =
      ip_checksum_ ? be16(*ip_checksum_) : internet_checksum(packet.data(), header_length);
  append(packet, body);
  return packet;
}

// The extension headers in the order given, a fragment header last; `first_protocol` becomes what the IPv6 header
// names.
Bytes PacketBuilder::ipv6_extensions(std::uint8_t& first_protocol) const {
  Bytes chain;
  first_protocol = protocol_;
  if (fragment_) {
    const auto offset_more = static_cast<std::uint16_t>(fragment_->offset | (fragment_->more ? 1 : 0));
    append_header(chain, Ipv6Fragment{protocol_, 0, be16(offset_more), be32(id_)});
    first_protocol = protocol_fragment;
  }
  for (auto it = extensions_.rbegin(); it != extensions_.rend(); ++it) {
    const std::size_t units = (sizeof(Ipv6Extension) + it->bytes.size() + 7) / 8;
    Bytes header;
    append_header(header, Ipv6Extension{first_protocol, static_cast<std::uint8_t>(units - 1)});
    append(header, it->bytes);
    header.resize(units * 8);
    append(header, chain);
    chain = std::move(header);
    first_protocol = it->protocol;
  }
  return chain;
}

Bytes PacketBuilder::ipv6_packet() const {
  std::uint8_t first_protocol = 0;
  Bytes body = ipv6_extensions(first_protocol);
  append(body, segment());
  const std::uint32_t version = ip_version_.value_or(6);
  Ipv6Header header{};
  header.version_class_flow = be32(version << 28 | std::uint32_t{tos_} << 20);
  header.payload_length = be16(ip_length_.value_or(static_cast<std::uint16_t>(body.size())));
  header.next_header = first_protocol;
  header.hop_limit = ttl_;
  std::ranges::copy(source_.bytes, header.source);
  std::ranges::copy(destination_.bytes, header.destination);
  Bytes packet;
  append_header(packet, header);
  append(packet, body);
  return packet;
}

}  // namespace sluice::packet
