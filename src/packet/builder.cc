#include "packet/builder.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "packet/headers.h"

namespace sluice::packet {
namespace {

template <typename T>
T value_or_throw(Expected<T> result) {
  if (!result) {
    throw std::invalid_argument(result.error().message);
  }
  return *std::move(result);
}

template <typename Header>
Bytes bytes_of(const Header& header) {
  Bytes bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

// The address, when it is of the family that the call asks for.
const IpAddress& of_family(int family, const IpAddress& address) {
  if (address.family != family) {
    throw std::invalid_argument("'" + address.str() + "' is not an IPv" + std::to_string(family) + " address");
  }
  return address;
}

}  // namespace

PacketBuilder& PacketBuilder::eth(std::string_view source, std::string_view destination) {
  source_mac_ = value_or_throw(MacAddress::parse(source));
  destination_mac_ = value_or_throw(MacAddress::parse(destination));
  eth_given_ = true;
  return *this;
}

PacketBuilder& PacketBuilder::ethertype(std::uint16_t type) {
  ethertype_ = type;
  return *this;
}

PacketBuilder& PacketBuilder::vlan(std::uint16_t id) {
  vlans_.push_back(id);
  return *this;
}

PacketBuilder& PacketBuilder::arp(std::uint16_t operation, std::string_view sender_ip, std::string_view target_ip) {
  network_ = Network::arp;
  arp_operation_ = operation;
  source_ = of_family(4, value_or_throw(IpAddress::parse(sender_ip)));
  destination_ = of_family(4, value_or_throw(IpAddress::parse(target_ip)));
  return *this;
}

PacketBuilder& PacketBuilder::arp_request(std::string_view sender_ip, std::string_view target_ip) {
  if (!eth_given_) {
    destination_mac_.bytes.fill(0xff);
  }
  return arp(1, sender_ip, target_ip);
}

PacketBuilder& PacketBuilder::arp_reply(std::string_view sender_ip, std::string_view target_ip) {
  return arp(2, sender_ip, target_ip);
}

PacketBuilder& PacketBuilder::pad_to(std::size_t length) {
  pad_to_ = length;
  return *this;
}

PacketBuilder& PacketBuilder::ipv4(std::string_view source, std::string_view destination) {
  return ipv4(value_or_throw(IpAddress::parse(source)), value_or_throw(IpAddress::parse(destination)));
}

PacketBuilder& PacketBuilder::ipv6(std::string_view source, std::string_view destination) {
  return ipv6(value_or_throw(IpAddress::parse(source)), value_or_throw(IpAddress::parse(destination)));
}

PacketBuilder& PacketBuilder::ipv4(const IpAddress& source, const IpAddress& destination) {
  network_ = Network::ipv4;
  source_ = of_family(4, source);
  destination_ = of_family(4, destination);
  return *this;
}

PacketBuilder& PacketBuilder::ipv6(const IpAddress& source, const IpAddress& destination) {
  network_ = Network::ipv6;
  source_ = of_family(6, source);
  destination_ = of_family(6, destination);
  return *this;
}

PacketBuilder& PacketBuilder::ttl(std::uint8_t value) {
  ttl_ = value;
  return *this;
}

PacketBuilder& PacketBuilder::tos(std::uint8_t value) {
  tos_ = value;
  return *this;
}

PacketBuilder& PacketBuilder::id(std::uint32_t value) {
  id_ = value;
  return *this;
}

PacketBuilder& PacketBuilder::dont_fragment() {
  dont_fragment_ = true;
  return *this;
}

PacketBuilder& PacketBuilder::fragment(std::uint16_t offset, bool more) {
  fragment_ = Fragment{offset, more};
  return *this;
}

PacketBuilder& PacketBuilder::options(Bytes bytes) {
  options_ = std::move(bytes);
  options_.resize((options_.size() + 3) / 4 * 4);
  return *this;
}

PacketBuilder& PacketBuilder::extension(std::uint8_t protocol, Bytes bytes) {
  extensions_.push_back({protocol, std::move(bytes)});
  return *this;
}

PacketBuilder& PacketBuilder::protocol(std::uint8_t value) {
  protocol_ = value;
  return *this;
}

PacketBuilder& PacketBuilder::transport(std::uint8_t protocol, Bytes header) {
  protocol_ = protocol;
  transport_ = std::move(header);
  return *this;
}

PacketBuilder& PacketBuilder::udp(std::uint16_t source_port, std::uint16_t destination_port) {
  UdpHeader header{};
  header.source_port = be16(source_port);
  header.destination_port = be16(destination_port);
  return transport(protocol_udp, bytes_of(header));
}

PacketBuilder& PacketBuilder::tcp(std::uint16_t source_port, std::uint16_t destination_port) {
  TcpHeader header{};
  header.source_port = be16(source_port);
  header.destination_port = be16(destination_port);
  header.data_offset = sizeof header / 4 << 4;
  header.flags = tcp_ack;
  header.window = 0xffff;
  return transport(protocol_tcp, bytes_of(header));
}

PacketBuilder& PacketBuilder::tcp_flags(std::uint8_t flags) {
  header_at<TcpHeader>(transport_.data(), 0).flags = flags;
  return *this;
}

PacketBuilder& PacketBuilder::tcp_sequence(std::uint32_t sequence, std::uint32_t acknowledgment) {
  auto& header = header_at<TcpHeader>(transport_.data(), 0);
  header.sequence = be32(sequence);
  header.acknowledgment = be32(acknowledgment);
  return *this;
}

PacketBuilder& PacketBuilder::icmp(std::uint8_t type, std::uint8_t code, std::uint32_t rest) {
  return transport(protocol_icmp, bytes_of(IcmpHeader{type, code, 0, be32(rest)}));
}

PacketBuilder& PacketBuilder::icmp6(std::uint8_t type, std::uint8_t code, std::uint32_t rest) {
  return transport(protocol_icmpv6, bytes_of(Icmpv6Header{type, code, 0, be32(rest)}));
}

PacketBuilder& PacketBuilder::payload(std::size_t length) {
  payload_.resize(length);
  for (std::size_t i = 0; i < length; ++i) {
    payload_[i] = static_cast<std::uint8_t>(i);
  }
  return *this;
}

PacketBuilder& PacketBuilder::payload(Bytes bytes) {
  payload_ = std::move(bytes);
  return *this;
}

PacketBuilder& PacketBuilder::ip_version(std::uint8_t version) {
  ip_version_ = version;
  return *this;
}

PacketBuilder& PacketBuilder::ihl(std::uint8_t words) {
  ihl_ = words;
  return *this;
}

PacketBuilder& PacketBuilder::ip_length(std::uint16_t length) {
  ip_length_ = length;
  return *this;
}

PacketBuilder& PacketBuilder::ip_checksum(std::uint16_t checksum) {
  ip_checksum_ = checksum;
  return *this;
}

PacketBuilder& PacketBuilder::udp_length(std::uint16_t length) {
  udp_length_ = length;
  return *this;
}

PacketBuilder& PacketBuilder::transport_checksum(std::uint16_t checksum) {
  transport_checksum_ = checksum;
  return *this;
}

PacketBuilder& PacketBuilder::cut_to(std::size_t length) {
  cut_to_ = length;
  return *this;
}

}  // namespace sluice::packet
