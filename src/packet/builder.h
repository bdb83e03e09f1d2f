// Frames for tests and benches, written the way one reads them; well formed unless a field is overridden.
//
//   const Bytes frame = PacketBuilder()
//                           .eth("02:00:00:00:00:01", "02:00:00:00:00:02")
//                           .ipv4("10.0.0.1", "10.1.0.1").ttl(64)
//                           .udp(1234, 80)
//                           .payload(18)
//                           .build();   // 14 + 20 + 8 + 18 = 60 bytes, all lengths and checksums right
//
// One link layer (eth, vlan, arp), at most one IP header, at most one transport header, then the payload; without eth()
// the frame has the addresses 02:00:00:00:00:01 -> 02:00:00:00:00:02. Lengths, next-header fields and checksums are
// computed by build(). The calls under "malformed" override them. build() may be called repeatedly, with changes in
// between.
//
// Errors: an address that does not parse throws std::invalid_argument (a mistake in the test itself).
// Not for the packet path: it allocates.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "packet/ip_address.h"

namespace sluice::packet {

using Bytes = std::vector<std::uint8_t>;

class PacketBuilder {
 public:
  // Link layer.
  PacketBuilder& eth(std::string_view source, std::string_view destination);
  PacketBuilder& ethertype(std::uint16_t type);  // overrides what follows from the network layer
  PacketBuilder& vlan(std::uint16_t id);         // again: an inner tag
  PacketBuilder& arp_request(std::string_view sender_ip,
                             std::string_view target_ip);  // broadcast unless eth() is given
  PacketBuilder& arp_reply(std::string_view sender_ip, std::string_view target_ip);
  // At least `length` bytes of frame: zeros behind the packet. Ethernet's minimum without FCS is 60.
  PacketBuilder& pad_to(std::size_t length);

  // Network layer.
  PacketBuilder& ipv4(std::string_view source, std::string_view destination);
  PacketBuilder& ipv6(std::string_view source, std::string_view destination);
  PacketBuilder& ipv4(const IpAddress& source, const IpAddress& destination);
  PacketBuilder& ipv6(const IpAddress& source, const IpAddress& destination);
  PacketBuilder& ttl(std::uint8_t value);  // or hop limit; default 64
  PacketBuilder& tos(std::uint8_t value);  // or traffic class
  PacketBuilder& id(std::uint32_t value);  // IPv4 identification, or of the IPv6 fragment header
  PacketBuilder& dont_fragment();
  // A fragment that starts `offset` bytes (a multiple of 8) into the datagram. A later fragment has no transport
  // header: its payload is what the datagram has there, and udp() or tcp() only choose the protocol.
  PacketBuilder& fragment(std::uint16_t offset, bool more);
  PacketBuilder& options(Bytes bytes);                           // IPv4; filled up with zeros to 32-bit words
  PacketBuilder& extension(std::uint8_t protocol, Bytes bytes);  // IPv6; `bytes` follow next header and length, filled
                                                                 // up with zeros to 8-byte units
  PacketBuilder& protocol(std::uint8_t value);  // of a packet without a transport header below; default 253 (RFC 3692)

  // Transport layer.
  PacketBuilder& udp(std::uint16_t source_port, std::uint16_t destination_port);
  PacketBuilder& tcp(std::uint16_t source_port, std::uint16_t destination_port);
  PacketBuilder& tcp_flags(std::uint8_t flags);  // default ACK
  PacketBuilder& tcp_sequence(std::uint32_t sequence, std::uint32_t acknowledgment);
  // `rest`: the header's second word, host order (identifier << 16 | sequence for an echo).
  PacketBuilder& icmp(std::uint8_t type, std::uint8_t code, std::uint32_t rest = 0);
  PacketBuilder& icmp6(std::uint8_t type, std::uint8_t code, std::uint32_t rest = 0);

  PacketBuilder& payload(std::size_t length);  // 0, 1, 2, ... 255, 0, ...
  PacketBuilder& payload(Bytes bytes);

  // Malformed: these go into the header as given.
  PacketBuilder& ip_version(std::uint8_t version);
  PacketBuilder& ihl(std::uint8_t words);
  PacketBuilder& ip_length(std::uint16_t length);      // IPv4 total length, IPv6 payload length
  PacketBuilder& ip_checksum(std::uint16_t checksum);  // as a number: 0x1234 lies as 12 34
  PacketBuilder& udp_length(std::uint16_t length);
  PacketBuilder& transport_checksum(std::uint16_t checksum);
  PacketBuilder& cut_to(std::size_t length);  // the frame ends after at most `length` bytes

  Bytes build() const;

 private:
  enum class Network { none, arp, ipv4, ipv6 };
  struct Extension {
    std::uint8_t protocol;
    Bytes bytes;
  };
  struct Fragment {
    std::uint16_t offset;
    bool more;
  };

  PacketBuilder& arp(std::uint16_t operation, std::string_view sender_ip, std::string_view target_ip);
  PacketBuilder& transport(std::uint8_t protocol, Bytes header);
  std::uint16_t network_ethertype() const;
  Bytes link_header() const;
  Bytes arp_packet() const;
  Bytes segment() const;
  Bytes ipv4_packet() const;
  Bytes ipv6_packet() const;
  Bytes ipv6_extensions(std::uint8_t& first_protocol) const;

  MacAddress source_mac_{{0x02, 0, 0, 0, 0, 0x01}};
  MacAddress destination_mac_{{0x02, 0, 0, 0, 0, 0x02}};
  bool eth_given_ = false;
  std::optional<std::uint16_t> ethertype_;
  std::vector<std::uint16_t> vlans_;
  std::size_t pad_to_ = 0;
  std::size_t cut_to_ = static_cast<std::size_t>(-1);

  Network network_ = Network::none;
  std::uint16_t arp_operation_ = 0;
  IpAddress source_;
  IpAddress destination_;
  std::uint8_t ttl_ = 64;
  std::uint8_t tos_ = 0;
  std::uint32_t id_ = 0;
  bool dont_fragment_ = false;
  std::optional<Fragment> fragment_;
  Bytes options_;
  std::vector<Extension> extensions_;

  std::uint8_t protocol_ = 253;
  Bytes transport_;  // header with checksum and length 0
  Bytes payload_;

  std::optional<std::uint8_t> ip_version_;
  std::optional<std::uint8_t> ihl_;
  std::optional<std::uint16_t> ip_length_;
  std::optional<std::uint16_t> ip_checksum_;
  std::optional<std::uint16_t> udp_length_;
  std::optional<std::uint16_t> transport_checksum_;
};

}  // namespace sluice::packet
