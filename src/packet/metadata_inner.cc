// The packet in a tunnel: one shim after the other until Ethernet or IP is there.
#include <iterator>

#include "packet/metadata.h"

namespace sluice::packet {
namespace {

// What lies at a place behind a tunnel's header.
enum class Inside : std::uint8_t { nothing, ethernet, ip, mpls, nsh, ppp };

constexpr std::uint16_t ethertype_bridged = 0x6558, ethertype_mpls = 0x8847, ethertype_mpls_multicast = 0x8848,
                        ethertype_pppoe = 0x8864, ethertype_ppp = 0x880b, ethertype_nsh = 0x894f;

// The bytes of a tunnel that are left, and what they are.
struct Rest {
  const std::uint8_t* frame;
  std::uint32_t at, end;
  Inside inside = Inside::nothing;

  std::uint32_t size() const { return end - at; }
  std::uint8_t byte(std::uint32_t offset) const { return frame[at + offset]; }
  std::uint16_t half(std::uint32_t offset) const {
    return static_cast<std::uint16_t>(frame[at + offset] << 8 | frame[at + offset + 1]);
  }
  // Behind `bytes` of header is `what`; false: the header is cut, or there is nothing known in it.
  bool go(std::uint32_t bytes, Inside what) {
    if (bytes > size()) what = Inside::nothing;
    inside = what;
    if (inside != Inside::nothing) at += bytes;
    return inside != Inside::nothing;
  }
};

Inside by_ethertype(std::uint16_t type) {
  switch (type) {
    case ethertype_ipv4:
    case ethertype_ipv6:
      return Inside::ip;
    case ethertype_bridged:
      return Inside::ethernet;
    case ethertype_mpls:
    case ethertype_mpls_multicast:
      return Inside::mpls;
    case ethertype_nsh:
      return Inside::nsh;
    case ethertype_ppp:
      return Inside::ppp;
    default:
      return Inside::nothing;
  }
}

// Of NSH and of VXLAN-GPE, the first four alike.
Inside by_next_protocol(std::uint8_t next) {
  constexpr Inside by_number[] = {Inside::nothing, Inside::ip, Inside::ip, Inside::ethernet, Inside::nsh, Inside::mpls};
  return next < std::size(by_number) ? by_number[next] : Inside::nothing;
}

// Says not what is behind it: by its first four bits (RFC 4928).
bool go_behind_mpls(Rest& rest) {
  constexpr std::uint32_t label = 4;
  for (bool bottom = false; !bottom; rest.at += label) {
    if (rest.size() <= label) return false;
    bottom = (rest.byte(2) & 1) != 0;
  }
  constexpr std::uint32_t control_word = 4;
  const unsigned first = rest.byte(0) >> 4;
  if (first == 4 || first == 6) return rest.go(0, Inside::ip);
  return first == 0 && rest.go(control_word, Inside::ethernet);
}

bool go_behind_nsh(Rest& rest) {
  constexpr std::uint32_t least = 8;
  if (rest.size() < least || rest.byte(0) >> 6 != 0) return false;
  const std::uint32_t bytes = (rest.byte(1) & 0x3fU) * 4U;
  return bytes >= least && rest.go(bytes, by_next_protocol(rest.byte(3)));
}

// RFC 1661, with its address and control field and a protocol of one byte, where they are.
bool go_behind_ppp(Rest& rest) {
  if (rest.size() >= 2 && rest.half(0) == 0xff03) rest.at += 2;
  if (rest.size() < 2) return false;
  const bool is_short = (rest.byte(0) & 1) != 0;
  switch (is_short ? rest.byte(0) : rest.half(0)) {
    case 0x0021:
    case 0x0057:
      return rest.go(is_short ? 1 : 2, Inside::ip);
    case 0x0281:
    case 0x0283:
      return rest.go(2, Inside::mpls);
    default:
      return false;
  }
}

bool go_behind_gre(Rest& rest) {
  if (rest.size() < 4) return false;
  const std::uint16_t flags = rest.half(0);
  constexpr std::uint16_t checksum = 0x8000, routing = 0x4000, key = 0x2000, sequence = 0x1000, acknowledgment = 0x0080;
  const auto field = [&](std::uint16_t flag) { return (flags & flag) != 0 ? 4U : 0U; };
  switch (flags & 7) {
    case 0:
      if ((flags & routing) != 0) return false;  // RFC 2784 section 2.3
      return rest.go(4 + field(checksum) + field(key) + field(sequence), by_ethertype(rest.half(2)));
    case 1:
      if (rest.half(2) != ethertype_ppp) return false;
      return rest.go(8 + field(sequence) + field(acknowledgment), Inside::ppp);
    default:
      return false;
  }
}

bool go_behind_pppoe(Rest& rest) {
  constexpr std::uint32_t header = 6;
  if (rest.size() < header || rest.byte(0) != 0x11 || rest.byte(1) != 0) return false;
  rest.end = std::min(rest.end, rest.at + header + rest.half(4));
  return rest.go(header, Inside::ppp);
}

bool go_behind_vxlan(Rest& rest, bool generic) {
  constexpr std::uint32_t header = 8;
  constexpr std::uint8_t has_vni = 0x08, has_next_protocol = 0x04;
  if (rest.size() < header || (rest.byte(0) & has_vni) == 0) return false;
  const bool says_next = generic && (rest.byte(0) & has_next_protocol) != 0;
  return rest.go(header, says_next ? by_next_protocol(rest.byte(3)) : Inside::ethernet);
}

bool go_behind_geneve(Rest& rest) {
  constexpr std::uint32_t header = 8;
  if (rest.size() < header || rest.byte(0) >> 6 != 0) return false;
  return rest.go(header + (rest.byte(0) & 0x3fU) * 4U, by_ethertype(rest.half(2)));
}

// TS 29.281 sections 5.1 and 5.2: a G-PDU, and its extension headers.
bool go_behind_gtp(Rest& rest) {
  constexpr std::uint32_t header = 8, optional = 4;
  constexpr std::uint8_t user_packet = 255;
  if (rest.size() < header || rest.byte(0) >> 4 != 3 || rest.byte(1) != user_packet) return false;
  rest.end = std::min(rest.end, rest.at + header + rest.half(2));
  const bool has_optional = (rest.byte(0) & 7) != 0, has_extension = (rest.byte(0) & 4) != 0;
  rest.at += header;
  if (!has_optional) return rest.go(0, Inside::ip);
  if (rest.size() < optional) return false;
  std::uint8_t next = has_extension ? rest.byte(3) : std::uint8_t{0};
  rest.at += optional;
  while (next != 0) {
    const std::uint32_t bytes = rest.size() == 0 ? 0 : rest.byte(0) * 4U;
    if (bytes == 0 || bytes > rest.size()) return false;
    next = rest.byte(bytes - 1);
    rest.at += bytes;
  }
  return rest.go(0, Inside::ip);
}

Tunnel over_udp(const Metadata& outer, Rest& rest) {
  rest.at = outer.payload;
  rest.end = outer.payload_end;
  const auto when = [](bool is, Tunnel tunnel) { return is ? tunnel : Tunnel::none; };
  switch (outer.destination_port) {
    case port_vxlan:
      return when(go_behind_vxlan(rest, false), Tunnel::vxlan);
    case port_vxlan_gpe:
      return when(go_behind_vxlan(rest, true), Tunnel::vxlan);
    case port_geneve:
      return when(go_behind_geneve(rest), Tunnel::geneve);
    case port_gtp_u:
      return when(go_behind_gtp(rest), Tunnel::gtp_u);
    case port_mpls:
      return when(go_behind_mpls(rest), Tunnel::mpls);
    default:
      return Tunnel::none;
  }
}

// The tunnel whose header is behind `outer`'s, and what is behind that.
Tunnel over_link(const Metadata& outer, Rest& rest) {
  rest.at = outer.network;
  switch (outer.type) {
    case ethertype_mpls:
    case ethertype_mpls_multicast:
      return go_behind_mpls(rest) ? Tunnel::mpls : Tunnel::none;
    case ethertype_pppoe:
      return go_behind_pppoe(rest) ? Tunnel::pppoe : Tunnel::none;
    case ethertype_nsh:
      return go_behind_nsh(rest) ? Tunnel::nsh : Tunnel::none;
    default:
      return Tunnel::none;
  }
}

Tunnel over_ip(const Metadata& outer, Rest& rest) {
  if (outer.chain_cut || outer.fragment()) return Tunnel::none;
  rest.at = outer.transport;
  rest.end = outer.end;
  switch (outer.protocol) {
    case protocol_ipv4:
    case protocol_ipv6:
      return rest.go(0, Inside::ip) ? Tunnel::ip : Tunnel::none;
    case protocol_gre:
      return go_behind_gre(rest) ? Tunnel::gre : Tunnel::none;
    case protocol_mpls:
      return go_behind_mpls(rest) ? Tunnel::mpls : Tunnel::none;
    case protocol_udp:
      return outer.has_header ? over_udp(outer, rest) : Tunnel::none;
    default:
      return Tunnel::none;
  }
}

// Through shims, each of which takes some bytes, to Ethernet or IP.
bool go_to_packet(Rest& rest) {
  for (;;) {
    switch (rest.inside) {
      case Inside::ethernet:
      case Inside::ip:
        return rest.size() != 0;
      case Inside::mpls:
        if (!go_behind_mpls(rest)) return false;
        break;
      case Inside::nsh:
        if (!go_behind_nsh(rest)) return false;
        break;
      case Inside::ppp:
        if (!go_behind_ppp(rest)) return false;
        break;
      case Inside::nothing:
        return false;
    }
  }
}

}  // namespace

Tunnel read_inner(const std::uint8_t* frame, std::uint32_t length, const Metadata& outer, Metadata& inner) {
  Rest rest{frame, 0, length};
  const Tunnel tunnel = outer.family == 0 ? over_link(outer, rest) : over_ip(outer, rest);
  if (tunnel == Tunnel::none || !go_to_packet(rest)) return Tunnel::none;
  if (rest.inside == Inside::ethernet) {
    read_frame_metadata(frame, rest.at, rest.end, Depth::transport, inner);
  } else {
    read_ip_metadata(frame, rest.at, rest.end, Depth::transport, inner);
  }
  return tunnel;
}

}  // namespace sluice::packet
