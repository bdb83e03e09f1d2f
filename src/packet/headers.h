// Headers as they are on the wire: structs to lay over the bytes of a frame, at any alignment.
//
// Fields wider than a byte are in network order; be16() and be32() convert both ways. The structs are packed and may
// alias bytes, so `header_at<Ipv4Header>(frame, 14)` is defined for any address. Nothing is checked here: see
// packet/parse.h.
//
// Sources: IEEE 802.3 and 802.1Q, RFC 826 (ARP), RFC 791 (IPv4), RFC 8200 (IPv6), RFC 9293 (TCP), RFC 768 (UDP),
// RFC 792 (ICMP), RFC 4443 (ICMPv6).
//
// All of it works in device code (nvcc --expt-relaxed-constexpr). There packed fields are read byte by byte, so a
// kernel whose speed is bound by loads should read aligned words instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::packet {

// Host order from network order, and back.
constexpr std::uint16_t be16(std::uint16_t value) {
  return static_cast<std::uint16_t>((value << 8) | (value >> 8));
}
constexpr std::uint32_t be32(std::uint32_t value) {
  return (value << 24) | ((value & 0xff00U) << 8) | ((value >> 8) & 0xff00U) | (value >> 24);
}

// EtherTypes, host order. Values below ethertype_min are IEEE 802.3 lengths.
inline constexpr std::uint16_t ethertype_min = 0x0600;
inline constexpr std::uint16_t ethertype_ipv4 = 0x0800;
inline constexpr std::uint16_t ethertype_arp = 0x0806;
inline constexpr std::uint16_t ethertype_vlan = 0x8100;
inline constexpr std::uint16_t ethertype_ipv6 = 0x86dd;
inline constexpr std::uint16_t ethertype_qinq = 0x88a8;
inline constexpr std::uint16_t ethertype_old_qinq = 0x9100;  // of outer tags before 802.1ad, and where it was kept

constexpr bool is_vlan_tag(std::uint16_t ethertype) {
  return ethertype == ethertype_vlan || ethertype == ethertype_qinq || ethertype == ethertype_old_qinq;
}

// IANA protocol numbers; in IPv6 some of them are extension headers.
inline constexpr std::uint8_t protocol_hop_by_hop = 0;
inline constexpr std::uint8_t protocol_icmp = 1;
inline constexpr std::uint8_t protocol_ipv4 = 4;  // in IP
inline constexpr std::uint8_t protocol_tcp = 6;
inline constexpr std::uint8_t protocol_udp = 17;
inline constexpr std::uint8_t protocol_dccp = 33;
inline constexpr std::uint8_t protocol_ipv6 = 41;  // in IP
inline constexpr std::uint8_t protocol_routing = 43;
inline constexpr std::uint8_t protocol_fragment = 44;
inline constexpr std::uint8_t protocol_gre = 47;
inline constexpr std::uint8_t protocol_esp = 50;
inline constexpr std::uint8_t protocol_ah = 51;
inline constexpr std::uint8_t protocol_icmpv6 = 58;
inline constexpr std::uint8_t protocol_no_next = 59;
inline constexpr std::uint8_t protocol_destination_options = 60;
inline constexpr std::uint8_t protocol_sctp = 132;
inline constexpr std::uint8_t protocol_udp_lite = 136;
inline constexpr std::uint8_t protocol_mpls = 137;  // in IP

// IPv6 extension headers that a parser skips: all but AH, which counts as a protocol here.
constexpr bool is_ipv6_extension(std::uint8_t next_header) {
  constexpr std::uint64_t all = (std::uint64_t{1} << protocol_hop_by_hop) | (std::uint64_t{1} << protocol_routing) |
                                (std::uint64_t{1} << protocol_fragment) |
                                (std::uint64_t{1} << protocol_destination_options);
  return next_header < 64 && (all >> next_header & 1) != 0;
}

// Whether the protocol's header begins with the two ports.
constexpr bool has_ports(std::uint8_t protocol) {
  constexpr std::uint64_t low =
      (std::uint64_t{1} << protocol_tcp) | (std::uint64_t{1} << protocol_udp) | (std::uint64_t{1} << protocol_dccp);
  return (protocol < 64 && (low >> protocol & 1) != 0) || protocol == protocol_sctp || protocol == protocol_udp_lite;
}

struct [[gnu::packed, gnu::may_alias]] EthernetHeader {
  std::uint8_t destination[6];
  std::uint8_t source[6];
  std::uint16_t ethertype;
};

// Follows EthernetHeader if is_vlan_tag(its ethertype).
struct [[gnu::packed, gnu::may_alias]] VlanHeader {
  std::uint16_t tci;  // priority 3 bits, DEI 1 bit, VLAN id 12 bits
  std::uint16_t ethertype;
};

// ARP for Ethernet and IPv4.
struct [[gnu::packed, gnu::may_alias]] ArpHeader {
  std::uint16_t hardware_type;  // 1: Ethernet
  std::uint16_t protocol_type;  // ethertype_ipv4
  std::uint8_t hardware_length;
  std::uint8_t protocol_length;
  std::uint16_t operation;  // 1: request, 2: reply
  std::uint8_t sender_mac[6];
  std::uint32_t sender_ip;
  std::uint8_t target_mac[6];
  std::uint32_t target_ip;
};

struct [[gnu::packed, gnu::may_alias]] Ipv4Header {
  std::uint8_t version_ihl;  // version 4 bits, header length in 32-bit words 4 bits
  std::uint8_t tos;
  std::uint16_t total_length;
  std::uint16_t id;
  std::uint16_t fragment;  // flags 3 bits (reserved, DF, MF), offset in 8-byte units 13 bits
  std::uint8_t ttl;
  std::uint8_t protocol;
  std::uint16_t checksum;
  std::uint32_t source;
  std::uint32_t destination;
};
// Of Ipv4Header::fragment, host order.
inline constexpr std::uint16_t ipv4_dont_fragment = 0x4000;
inline constexpr std::uint16_t ipv4_more_fragments = 0x2000;
inline constexpr std::uint16_t ipv4_fragment_offset = 0x1fff;

struct [[gnu::packed, gnu::may_alias]] Ipv6Header {
  std::uint32_t version_class_flow;  // version 4 bits, traffic class 8 bits, flow label 20 bits
  std::uint16_t payload_length;      // what follows these 40 bytes, extension headers included
  std::uint8_t next_header;
  std::uint8_t hop_limit;
  std::uint8_t source[16];
  std::uint8_t destination[16];
};

constexpr std::uint8_t ipv6_traffic_class(const std::uint8_t* ipv6_header) {
  return static_cast<std::uint8_t>(ipv6_header[0] << 4 | ipv6_header[1] >> 4);
}

// The common start of hop-by-hop, routing and destination options headers.
struct [[gnu::packed, gnu::may_alias]] Ipv6Extension {
  std::uint8_t next_header;
  std::uint8_t length;  // 8-byte units, without the first
};

struct [[gnu::packed, gnu::may_alias]] Ipv6Fragment {
  std::uint8_t next_header;
  std::uint8_t reserved;
  std::uint16_t offset_more;  // offset in 8-byte units 13 bits, reserved 2 bits, more fragments 1 bit
  std::uint32_t id;
};

struct [[gnu::packed, gnu::may_alias]] TcpHeader {
  std::uint16_t source_port;
  std::uint16_t destination_port;
  std::uint32_t sequence;
  std::uint32_t acknowledgment;
  std::uint8_t data_offset;  // upper 4 bits: header length in 32-bit words
  std::uint8_t flags;
  std::uint16_t window;
  std::uint16_t checksum;
  std::uint16_t urgent;
};
inline constexpr std::uint8_t tcp_fin = 0x01;
inline constexpr std::uint8_t tcp_syn = 0x02;
inline constexpr std::uint8_t tcp_rst = 0x04;
inline constexpr std::uint8_t tcp_psh = 0x08;
inline constexpr std::uint8_t tcp_ack = 0x10;

struct [[gnu::packed, gnu::may_alias]] UdpHeader {
  std::uint16_t source_port;
  std::uint16_t destination_port;
  std::uint16_t length;    // header and payload
  std::uint16_t checksum;  // 0 over IPv4: the sender made none
};

// What ESP begins with (RFC 4303 section 2).
struct [[gnu::packed, gnu::may_alias]] EspHeader {
  std::uint32_t spi;
  std::uint32_t sequence;
};

// RFC 4302 section 2; the ICV follows.
struct [[gnu::packed, gnu::may_alias]] AhHeader {
  std::uint8_t next_header;
  std::uint8_t length;  // 4-byte units, less 2
  std::uint16_t reserved;
  std::uint32_t spi;
  std::uint32_t sequence;
};

struct [[gnu::packed, gnu::may_alias]] IcmpHeader {
  std::uint8_t type;
  std::uint8_t code;
  std::uint16_t checksum;
  std::uint32_t rest;  // by type: identifier and sequence, next-hop MTU, …
};

struct [[gnu::packed, gnu::may_alias]] Icmpv6Header {
  std::uint8_t type;
  std::uint8_t code;
  std::uint16_t checksum;
  std::uint32_t rest;  // by type: identifier and sequence, MTU, …
};

static_assert(sizeof(EthernetHeader) == 14 && sizeof(VlanHeader) == 4 && sizeof(ArpHeader) == 28);
static_assert(sizeof(Ipv4Header) == 20 && sizeof(Ipv6Header) == 40 && sizeof(Ipv6Fragment) == 8);
static_assert(sizeof(TcpHeader) == 20 && sizeof(UdpHeader) == 8 && sizeof(IcmpHeader) == 8 &&
              sizeof(Icmpv6Header) == 8);

// The header at `offset`; the caller has checked that the frame is long enough.
template <typename Header>
inline const Header& header_at(const std::uint8_t* frame, std::size_t offset) {
  return *reinterpret_cast<const Header*>(frame + offset);
}
template <typename Header>
inline Header& header_at(std::uint8_t* frame, std::size_t offset) {
  return *reinterpret_cast<Header*>(frame + offset);
}

// The six bytes of a MAC address as one word, for comparisons. It also reads the two bytes behind them.
inline constexpr std::uint64_t mac_word_mask = 0xffff'ffff'ffff;
inline std::uint64_t mac_word(const std::uint8_t* address) {
  std::uint64_t word;
  std::memcpy(&word, address, sizeof word);
  return word & mac_word_mask;
}

}  // namespace sluice::packet
