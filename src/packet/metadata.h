// Packet metadata: where the headers of a frame lie and what they are. The one parser of frames; who needs a header's
// field reads it at the place that the metadata names.
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
// Never refuses a frame: it says how far the headers reach. Its limits, the same for all who ask:
//   VLAN tags          802.1Q, 802.1ad and 0x9100: as many as there are
//   IPv4 options       skipped
//   extension headers  IPv6's hop-by-hop, routing, destination options and fragment headers: as many as there are,
//                      in any order (RFC 8200 section 4.1). AH and ESP are the packet's protocol
//   fragments          the first has its transport header; behind an atomic fragment header (RFC 6946) all is as
//                      without it
//   jumbograms         no payload length in front of hop-by-hop options: all of the frame (ipv6_length.h)
//   other links        802.3 lengths, LLC and SNAP hold no IP here
// Checksums and addresses are not looked at: packet/parse.h does, for who forwards.
//
// Thread-safety: any thread. Reads nothing at or behind frame + length. Cost: 3 ns of what most frames are, which
// read_plain() takes, some 10 ns of others, 2 ns more for each extension header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "packet/headers.h"

namespace sluice::packet {

// How much of Metadata is filled in; the rest is as made.
enum class Depth : std::uint8_t {
  link,       // link, network, type, tags
  network,    // and all that the IP headers say
  transport,  // and ports, has_header, payload
};

// Offsets count from the frame's first byte, of an inner packet's headers too.
struct Metadata {
  std::uint32_t link = 0;       // of the Ethernet header; of a packet without one: as `network`
  std::uint32_t network = 0;    // of what is behind the Ethernet header and its tags
  std::uint32_t transport = 0;  // of what is behind all IP headers; of a later fragment: of its piece
  std::uint32_t end = 0;        // of the IP packet, which may be padded; not behind the frame
  std::uint32_t ip_length = 0;  // bytes of the IP packet, as its header says
  std::uint32_t payload = 0;    // behind the transport header; `transport` where there is none that is known
  std::uint32_t payload_end = 0;
  // IPv6: of the fragment header, and of the byte that announces that; 0: there is none. Of several: the first that
  // makes it a fragment, or the last.
  std::uint32_t fragment_header = 0, fragment_named_at = 0;
  std::uint16_t tags = 0;                               // number of VLAN tags
  std::uint16_t type = 0;                               // ethertype behind them; a tag's: the frame ends in one
  std::uint16_t fragment_offset = 0;                    // in units of eight bytes
  std::uint16_t source_port = 0, destination_port = 0;  // host order
  std::uint8_t family = 0;                              // 4 or 6; 0: no IP, or its header contradicts itself
  std::uint8_t protocol = 0;           // of the transport; of a chain that is cut: of the last header that is there
  std::uint8_t fragment_protocol = 0;  // of a fragment: what it is one of; IPv6: as its fragment header names it
  bool whole = false;                  // the IP packet is not longer than the frame
  bool chain_cut = false;              // it ends within its extension headers
  bool routed = false;                 // an IPv6 routing header is there: the last destination is in that
  bool more_fragments = false;
  bool behind_atomic = false;    // a fragment whose header comes behind an atomic one's: Linux refuses it
  bool later = false;            // a fragment that is not the first: no transport header
  bool hides_transport = false;  // a later fragment over the flags of TCP's header (RFC 1858, RFC 3128)
  bool has_ports = false;        // has_ports(protocol), and they are there
  bool has_header = false;       // the transport header is whole: of TCP with its options, UDP, UDP-Lite, SCTP, ICMP

  bool operator==(const Metadata&) const = default;

  // The addresses in the frame that this is of, in network order; of IP.
  const std::uint8_t* source(const std::uint8_t* frame) const {
    return frame + network + (family == 4 ? offsetof(Ipv4Header, source) : offsetof(Ipv6Header, source));
  }
  const std::uint8_t* destination(const std::uint8_t* frame) const {
    return frame + network + (family == 4 ? offsetof(Ipv4Header, destination) : offsetof(Ipv6Header, destination));
  }

  bool fragment() const { return fragment_offset != 0 || more_fragments; }
  // IP of which nothing is cut.
  bool is_whole_packet() const { return family != 0 && whole && !chain_cut; }
  // The same, and no piece of another.
  bool is_datagram() const { return is_whole_packet() && !fragment(); }
  // By its ethertype IP, or cut before that is known, but nothing that can be read as IP.
  bool is_broken() const {
    return family == 0 && (type == ethertype_ipv4 || type == ethertype_ipv6 || is_vlan_tag(type));
  }
};

// From the Ethernet header on. `meta` must be as made.
void read_metadata(const std::uint8_t* frame, std::uint32_t length, Depth depth, Metadata& meta);
// The same of the frame in [at, end) of `frame`, one in a tunnel.
void read_frame_metadata(const std::uint8_t* frame, std::uint32_t at, std::uint32_t end, Depth depth, Metadata& meta);
// The same of a packet without a link, of the IP version that it says, whose header is at `at`.
void read_ip_metadata(const std::uint8_t* frame, std::uint32_t at, std::uint32_t length, Depth depth, Metadata& meta);
// Goes over extension headers from `meta.transport` on, the first of which is `meta.protocol`: how a packet goes on
// behind a header that is not skipped here (AH). Ports and payload are not read again.
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

// Of the packet in the tunnel that ends behind `outer`'s headers, to the depth `transport`. `outer`: of the same frame,
// to that depth; an inner one is asked for what it holds itself. Shims between (MPLS or NSH in GRE, say) are gone
// through. none: no tunnel, or nothing in it that is Ethernet or IP; `inner` is then as made. A tunnel over UDP is
// known by its destination port. `inner` must be as made. `length`: of the frame.
Tunnel read_inner(const std::uint8_t* frame, std::uint32_t length, const Metadata& outer, Metadata& inner);

// UDP's destination ports of tunnels.
inline constexpr std::uint16_t port_vxlan = 4789, port_vxlan_gpe = 4790, port_geneve = 6081, port_gtp_u = 2152,
                               port_mpls = 6635;
// Whether read_inner() may find a packet in an IP packet of this protocol and, of UDP, this destination port.
constexpr bool may_be_tunnel(std::uint8_t protocol, std::uint16_t destination_port) {
  if (protocol == protocol_udp) {
    return destination_port == port_vxlan || destination_port == port_vxlan_gpe || destination_port == port_geneve ||
           destination_port == port_gtp_u || destination_port == port_mpls;
  }
  return protocol == protocol_ipv4 || protocol == protocol_ipv6 || protocol == protocol_gre ||
         protocol == protocol_mpls;
}

namespace detail {

// What is behind the link, of `type`, from `l3` on. True: `meta`, whose link is there, is filled to the depth
// `transport`; false: it is as it was.
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

// What most frames are: untagged, IPv4 without options or IPv6 without extension headers, whole, no fragment, TCP or
// UDP with a whole header. True: `meta`, as made before, is filled to the depth `transport`. False: it is none such,
// and `meta` is as it was. Of a `meta` that is not handed on only what is read is made.
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
