// Packet metadata: where the headers of a frame lie, and what they are. All code uses this parser, and reads a field of
// a header at the offset that the metadata gives.
//
//   Metadata meta;
//   read_metadata(frame, length, Depth::transport, meta);
//   if (meta.is_whole_packet() && meta.protocol == protocol_tcp && meta.has_header) {
//     ...                                    // the TCP header begins at frame + meta.transport
//   }
//   Metadata inner;
//   if (read_inner(frame, length, meta, inner) != Tunnel::none) {
//     ...                                    // `inner` describes the packet in the tunnel
//   }
//
// It never refuses a frame: it says how far the headers reach. What it looks behind:
//   VLAN tags          802.1Q, 802.1ad and 0x9100: as many as there are
//   IPv4 options       skipped
//   extension headers  IPv6's hop-by-hop, routing, destination options and fragment headers: as many as there are,
//                      in any order (RFC 8200 section 4.1). AH and ESP are the packet's protocol
//   fragments          the first has its transport header; behind an atomic fragment header (RFC 6946) all is as
//                      without it
//   jumbograms         no payload length in front of hop-by-hop options: all of the frame (ipv6_length.h)
//   other links        802.3 lengths, LLC and SNAP hold no IP here
// It checks no checksum and no address. packet/parse.h does that, for elements that forward.
//
// Thread-safety: any thread. It reads nothing at or behind frame + length. Cost: 3 ns for a plain frame (read_plain()),
// about 10 ns for others, and 2 ns for each extension header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "packet/headers.h"

namespace sluice::packet {

// How much of Metadata is filled in. The other fields keep their initial values.
enum class Depth : std::uint8_t {
  link,       // link, network, type, tags
  network,    // also all fields that come from the IP headers
  transport,  // also ports, has_header, payload
};

// All offsets count from the frame's first byte, also those of an inner packet.
struct Metadata {
  std::uint32_t link = 0;       // offset of the Ethernet header; of a packet without one: as `network`
  std::uint32_t network = 0;    // offset of what follows the Ethernet header and its tags
  std::uint32_t transport = 0;  // offset of what follows all IP headers; in a later fragment: of its data
  std::uint32_t end = 0;        // offset of the end of the IP packet, without padding; never behind the frame
  std::uint32_t ip_length = 0;  // bytes of the IP packet, as its header says
  std::uint32_t payload = 0;    // offset of what follows the transport header; `transport` if no such header is known
  std::uint32_t payload_end = 0;
  // IPv6: the offsets of the fragment header, and of the next-header byte that names it; 0: there is none. With several
  // fragment headers: the first one that makes the packet a fragment, else the last one.
  std::uint32_t fragment_header = 0, fragment_named_at = 0;
  std::uint16_t tags = 0;                               // number of VLAN tags
  std::uint16_t type = 0;                               // ethertype behind the tags; a tag's: the frame ends in a tag
  std::uint16_t fragment_offset = 0;                    // in units of eight bytes
  std::uint16_t source_port = 0, destination_port = 0;  // host order
  std::uint8_t family = 0;                              // 4 or 6; 0: no IP, or its header contradicts itself
  std::uint8_t protocol = 0;           // of the transport header; if chain_cut: of the last header that is there
  std::uint8_t fragment_protocol = 0;  // of the datagram that a fragment is part of; IPv6: as the fragment header says
  bool whole = false;                  // the IP packet is not longer than the frame
  bool chain_cut = false;              // the packet ends within its extension headers
  bool routed = false;                 // there is an IPv6 routing header, which has the final destination
  bool more_fragments = false;
  bool behind_atomic = false;    // a fragment header follows an atomic one: Linux refuses such a packet
  bool later = false;            // a fragment that is not the first: it has no transport header
  bool hides_transport = false;  // a later fragment that overwrites the flags of a TCP header (RFC 1858, RFC 3128)
  bool has_ports = false;        // the protocol has ports, and they are in the frame
  bool has_header = false;       // the whole transport header is there: TCP with options, UDP, UDP-Lite, SCTP, ICMP

  bool operator==(const Metadata&) const = default;

  // The IP addresses in `frame`, in network order. Only if `family` is not 0.
  const std::uint8_t* source(const std::uint8_t* frame) const {
    return frame + network + (family == 4 ? offsetof(Ipv4Header, source) : offsetof(Ipv6Header, source));
  }
  const std::uint8_t* destination(const std::uint8_t* frame) const {
    return frame + network + (family == 4 ? offsetof(Ipv4Header, destination) : offsetof(Ipv6Header, destination));
  }

  bool fragment() const { return fragment_offset != 0 || more_fragments; }
  // A complete IP packet: nothing of it is cut.
  bool is_whole_packet() const { return family != 0 && whole && !chain_cut; }
  // A complete IP packet that is no fragment.
  bool is_datagram() const { return is_whole_packet() && !fragment(); }
  // The ethertype says IP, or is cut, but there is no IP header that can be read.
  bool is_broken() const {
    return family == 0 && (type == ethertype_ipv4 || type == ethertype_ipv6 || is_vlan_tag(type));
  }
};

// Reads a frame from its Ethernet header on. `meta` must have its initial values.
void read_metadata(const std::uint8_t* frame, std::uint32_t length, Depth depth, Metadata& meta);
// The same for an inner frame, in the bytes [at, end) of `frame`.
void read_frame_metadata(const std::uint8_t* frame, std::uint32_t at, std::uint32_t end, Depth depth, Metadata& meta);
// The same for a packet without an Ethernet header. Its IP header begins at `at` and says the version.
void read_ip_metadata(const std::uint8_t* frame, std::uint32_t at, std::uint32_t length, Depth depth, Metadata& meta);
// Skips extension headers from `meta.transport` on, of which the first has the protocol `meta.protocol`: for a packet
// that goes on behind a header which this parser does not skip (AH). It does not read ports and payload again.
void walk_extensions(const std::uint8_t* frame, Metadata& meta);

enum class Tunnel : std::uint8_t {
  none,
  ip,      // IP in IP: protocols 4 and 41 (RFC 2003, RFC 4213)
  gre,     // RFC 2784 and 2890, and PPTP's (RFC 2637)
  vxlan,   // RFC 7348, UDP 4789, and its Generic Protocol Extension, UDP 4790
  geneve,  // RFC 8926, UDP 6081
  gtp_u,   // 3GPP TS 29.281, UDP 2152
  mpls,    // RFC 3032; in IP (RFC 4023) and UDP (RFC 7510); an Ethernet pseudowire with a control word (RFC 4448)
  pppoe,   // RFC 2516
  nsh,     // RFC 8300
};

// Reads the packet in the tunnel whose header follows the headers of `outer`, to Depth::transport. `outer`: of the same
// frame, read to the same depth. For a tunnel in a tunnel call it again with the inner one as `outer`. Headers in
// between are skipped, such as MPLS or NSH in GRE. none: there is no tunnel, or it holds neither Ethernet nor IP;
// `inner` is unchanged. A tunnel over UDP is recognised by its destination port. `inner` must have its initial values.
// `length`: of the frame.
Tunnel read_inner(const std::uint8_t* frame, std::uint32_t length, const Metadata& outer, Metadata& inner);

// UDP's destination ports of tunnels.
inline constexpr std::uint16_t port_vxlan = 4789, port_vxlan_gpe = 4790, port_geneve = 6081, port_gtp_u = 2152,
                               port_mpls = 6635;
// Whether read_inner() may find a tunnel in an IP packet of this protocol and, for UDP, with this destination port.
constexpr bool may_be_tunnel(std::uint8_t protocol, std::uint16_t destination_port) {
  if (protocol == protocol_udp) {
    return destination_port == port_vxlan || destination_port == port_vxlan_gpe || destination_port == port_geneve ||
           destination_port == port_gtp_u || destination_port == port_mpls;
  }
  return protocol == protocol_ipv4 || protocol == protocol_ipv6 || protocol == protocol_gre ||
         protocol == protocol_mpls;
}

namespace detail {

// Reads what follows the Ethernet header: `type`, from `l3` on. `meta.link` is set. True: `meta` is filled to
// Depth::transport. False: `meta` is unchanged.
[[gnu::always_inline]] inline bool read_plain_ip(const std::uint8_t* frame, std::uint16_t type, std::uint32_t l3,
                                                 std::uint32_t length, Metadata& meta) {
  if (length < l3 + sizeof(Ipv4Header)) return false;
  const std::uint32_t there = length - l3;
  std::uint32_t header = sizeof(Ipv4Header), ip_length = 0;
  std::uint8_t family = 4, protocol = 0;
  if (type == ethertype_ipv4) {
    const auto& ip = header_at<Ipv4Header>(frame, l3);
    if (ip.version_ihl != 0x45 || (ip.fragment & be16(ipv4_more_fragments | ipv4_fragment_offset)) != 0) return false;
    protocol = ip.protocol;
    ip_length = be16(ip.total_length);
  } else if (type == ethertype_ipv6 && there >= sizeof(Ipv6Header)) {
    const auto& ip = header_at<Ipv6Header>(frame, l3);
    header = sizeof(Ipv6Header);
    family = 6;
    if (frame[l3] >> 4 != 6) return false;
    protocol = ip.next_header;
    ip_length = header + be16(ip.payload_length);
  } else {
    return false;
  }
  if (ip_length > there || ip_length < header) return false;
  const std::uint32_t transport = l3 + header, bytes = ip_length - header;
  std::uint32_t transport_bytes = sizeof(UdpHeader), covered = bytes;
  if (protocol == protocol_tcp) {
    if (bytes < sizeof(TcpHeader)) return false;
    transport_bytes = (header_at<TcpHeader>(frame, transport).data_offset >> 4) * 4U;
    if (transport_bytes < sizeof(TcpHeader) || transport_bytes > bytes) return false;
  } else {
    if (protocol != protocol_udp || bytes < sizeof(UdpHeader)) return false;
    const std::uint32_t said = be16(header_at<UdpHeader>(frame, transport).length);
    if (said < sizeof(UdpHeader)) return false;  // 0 means something over IPv6
    covered = std::min(said, bytes);
  }
  meta.network = l3;
  meta.transport = transport;
  meta.end = l3 + ip_length;
  meta.ip_length = ip_length;
  meta.payload = transport + transport_bytes;
  meta.payload_end = transport + covered;
  meta.type = type;
  const auto& ports = header_at<UdpHeader>(frame, transport);
  meta.source_port = be16(ports.source_port);
  meta.destination_port = be16(ports.destination_port);
  meta.family = family;
  meta.protocol = protocol;
  meta.fragment_protocol = family == 4 ? protocol : std::uint8_t{0};
  meta.whole = meta.has_ports = meta.has_header = true;
  return true;
}

}  // namespace detail

// The fast case, for plain frames: untagged, IPv4 without options or IPv6 without extension headers, complete, no
// fragment, TCP or UDP with a complete header. True: `meta`, which had its initial values, is filled to
// Depth::transport. False: the frame is not plain, and `meta` is unchanged. It is inline, so that the compiler leaves
// out the fields that a caller does not read.
[[gnu::always_inline]] inline bool read_plain(const std::uint8_t* frame, std::uint32_t length, Metadata& meta) {
  constexpr std::uint32_t l3 = sizeof(EthernetHeader);
  return length >= l3 &&
         detail::read_plain_ip(frame, be16(header_at<EthernetHeader>(frame, 0).ethertype), l3, length, meta);
}

inline void read_metadata(const std::uint8_t* frame, std::uint32_t length, Depth depth, Metadata& meta) {
  if (depth != Depth::transport || !read_plain(frame, length, meta)) {
    read_frame_metadata(frame, 0, length, depth, meta);
  }
}

}  // namespace sluice::packet
