#include "port/link_frame.h"

#include <algorithm>
#include <array>

#include "port/vendor_frame.h"
#include "port/wireless_frame.h"

namespace sluice::port {
namespace {

using Take = std::function<void(Bytes)>;
using Decode = LinkFate (*)(Bytes, const Take&);

constexpr std::uint16_t ipv4_type = 0x0800, ipv6_type = 0x86dd;
constexpr std::size_t ethernet_header = 14;

// What is behind the first `size` bytes; empty: the frame ends before or there.
Bytes behind(Bytes frame, std::size_t size) {
  return frame.size() > size ? frame.subspan(size) : Bytes();
}

LinkFate ip(Bytes packet, const Take& take) {
  if (packet.empty()) return LinkFate::cut;
  const unsigned version = packet[0] >> 4;
  if (version != 4 && version != 6) return LinkFate::no_packet;
  return link::typed(version == 4 ? ipv4_type : ipv6_type, packet, {}, take);
}

template <std::size_t header>
LinkFate ip_behind(Bytes frame, const Take& take) {
  return ip(behind(frame, header), take);
}

template <std::size_t header>
LinkFate ethernet_behind(Bytes frame, const Take& take) {
  if (frame.size() < header + ethernet_header) return LinkFate::cut;
  take(behind(frame, header));
  return LinkFate::read;
}

template <std::size_t header>
LinkFate llc_behind(Bytes frame, const Take& take) {
  return link::llc(behind(frame, header), {}, take);
}

// A protocol of PPP, in one byte or two (RFC 1661 6.5), maybe behind an address and a control byte (RFC 1662 3.1).
LinkFate ppp(Bytes frame, const Take& take) {
  if (frame.size() >= 2 && frame[0] == 0xff && frame[1] == 0x03) frame = frame.subspan(2);
  if (frame.size() < 2) return LinkFate::cut;
  const bool one_byte = (frame[0] & 1) != 0;
  const unsigned protocol = one_byte ? frame[0] : link::half(frame, 0);
  frame = behind(frame, one_byte ? 1 : 2);
  switch (protocol) {
    case 0x0021:
      return link::typed(ipv4_type, frame, {}, take);
    case 0x0057:
      return link::typed(ipv6_type, frame, {}, take);
    case 0x0281:
    case 0x0283:
      return link::mpls(frame, take);
    default:
      return LinkFate::no_packet;
  }
}

// A byte of direction stands before, or where FF would.
LinkFate directed_ppp(Bytes frame, const Take& take) {
  return ppp(behind(frame, 1), take);
}

LinkFate pppd(Bytes frame, const Take& take) {
  return frame.size() > 1 && frame[0] <= 1 && frame[1] == 0x03 ? ppp(behind(frame, 2), take) : ppp(frame, take);
}

LinkFate pppoe(Bytes frame, const Take& take) {
  if (frame.size() < 6) return LinkFate::cut;
  return frame[1] == 0 ? ppp(behind(frame, 6), take) : LinkFate::no_packet;  // its code: 0 is a session
}

// Cisco's: address, control, EtherType. PPP in HDLC has another address.
LinkFate hdlc(Bytes frame, const Take& take) {
  if (frame.size() < 4) return LinkFate::cut;
  if (frame[0] == 0xff && frame[1] == 0x03) return ppp(frame, take);
  return link::typed(link::half(frame, 2), behind(frame, 4), {}, take);
}

LinkFate directed_hdlc(Bytes frame, const Take& take) {
  return hdlc(behind(frame, 1), take);
}

LinkFate frame_relay(Bytes frame, const Take& take) {
  std::size_t at = 0;
  while (at < 4 && at < frame.size() && (frame[at] & 1) == 0) ++at;  // the address's last byte has bit 0 set
  frame = behind(frame, at + 1);
  if (frame.size() < 3) return LinkFate::cut;
  if (frame[0] != 0x03) return link::typed(link::half(frame, 0), behind(frame, 2), {}, take);  // Cisco's own
  frame = behind(frame, frame[1] == 0 ? 2 : 1);                                                // a pad
  if (frame.empty()) return LinkFate::cut;
  constexpr unsigned snap = 0x80, nlpid_ipv4 = 0xcc, nlpid_ipv6 = 0x8e;
  if (frame[0] == nlpid_ipv4 || frame[0] == nlpid_ipv6) return ip(behind(frame, 1), take);
  return frame[0] == snap ? link::snap(behind(frame, 1), {}, take) : LinkFate::no_packet;
}

LinkFate directed_relay(Bytes frame, const Take& take) {
  return frame_relay(behind(frame, 1), take);
}

// Linux cooked: the packet's type of Linux where it is none of Ethernet. `address`: of the sender, 6 bytes where any.
LinkFate cooked(std::uint16_t type, Bytes packet, Bytes address, const Take& take) {
  constexpr std::uint16_t without_llc = 1, with_llc = 4, of_ppp = 7, smallest_type = 0x0600;
  if (type == with_llc) return link::llc(packet, {{}, address}, take);
  if (type == of_ppp) return ppp(packet, take);
  if (type == without_llc) return LinkFate::no_packet;
  if (type < smallest_type) {
    // A tunnel's or a modem's packets come without a type.
    return type == 0 ? ip(packet, take) : LinkFate::no_packet;
  }
  return link::typed(type, packet, {{}, address}, take);
}

LinkFate cooked1(Bytes frame, const Take& take) {
  if (frame.size() < 16) return LinkFate::cut;
  const bool has_address = link::half(frame, 4) == 6;
  return cooked(link::half(frame, 14), behind(frame, 16), has_address ? frame.subspan(6, 6) : Bytes(), take);
}

LinkFate cooked2(Bytes frame, const Take& take) {
  if (frame.size() < 20) return LinkFate::cut;
  return cooked(link::half(frame, 0), behind(frame, 20), frame[11] == 6 ? frame.subspan(12, 6) : Bytes(), take);
}

// NFLOG: pieces with a length and a type, of the byte order of the host that captured.
LinkFate nflog(Bytes frame, const Take& take) {
  constexpr unsigned payload = 9;
  for (const bool little : {true, false}) {
    for (std::size_t at = 4; at + 4 <= frame.size();) {
      const auto value = [&](std::size_t where) -> unsigned {
        return little ? frame[where] | frame[where + 1] << 8 : link::half(frame, where);
      };
      const std::size_t size = value(at);
      if (size < 4) break;
      // The capture may end inside the payload, and inside nothing else.
      if ((value(at + 2) & 0x7fff) == payload)
        return ip(behind(frame.first(std::min(at + size, frame.size())), at + 4), take);
      if (at + size > frame.size()) break;
      at += (size + 3) / 4 * 4;
    }
  }
  return frame.size() < 4 ? LinkFate::cut : LinkFate::no_packet;
}

LinkFate pf_log(Bytes frame, const Take& take) {
  return frame.empty() ? LinkFate::cut : ip(behind(frame, (frame[0] + 3U) / 4 * 4), take);
}

// RFC 1483's of a virtual circuit for IP has LLC before the packet, or nothing.
LinkFate ip_over_atm(Bytes packet, const Take& take) {
  const unsigned first = packet.empty() ? 0 : packet[0] >> 4;
  return first == 4 || first == 6 ? ip(packet, take) : link::llc(packet, {}, take);
}

template <std::uint32_t inner>
LinkFate juniper(Bytes frame, const Take& take) {
  return link::juniper(inner, frame, take);
}

template <std::size_t size>
LinkFate tagged(Bytes frame, const Take& take) {
  return link::without_tag(size, frame, take);
}

template <std::size_t type, std::size_t packet>
LinkFate typed_at(Bytes frame, const Take& take) {
  return link::typed_at(type, packet, frame, take);
}

template <std::size_t type>
LinkFate arcnet(Bytes frame, const Take& take) {
  return link::arcnet(type, frame, take);
}

// BSD/OS's: a header of its own, in which PPP's protocol is at 5.
LinkFate bsdos_ppp(Bytes frame, const Take& take) {
  constexpr std::size_t header = 24, protocol = 5;
  if (frame.size() <= header) return LinkFate::cut;
  const unsigned of = link::half(frame, protocol);
  return of == 0x0021 || of == 0x0057 ? ip(behind(frame, header), take) : LinkFate::no_packet;
}

// PPI and PKTAP say themselves which link is behind them.
LinkFate ppi(Bytes frame, const Take& take) {
  if (frame.size() < 8) return LinkFate::cut;
  const std::uint32_t inner = link::little_word(frame, 4);
  constexpr std::uint32_t itself = 192;
  const std::size_t size = frame[2] | frame[3] << 8;
  if (inner == itself || size < 8) return LinkFate::no_packet;
  return to_ethernet(inner, behind(frame, size), take);
}

LinkFate pktap(Bytes frame, const Take& take) {
  if (frame.size() < 12) return LinkFate::cut;
  constexpr std::uint32_t longest = 0xffff, itself = 258, old_itself = 149;
  const bool swapped = link::little_word(frame, 0) > longest;
  const auto value = [&](std::size_t at) {
    return swapped ? __builtin_bswap32(link::little_word(frame, at)) : link::little_word(frame, at);
  };
  const std::uint32_t inner = value(8);
  if (inner == itself || inner == old_itself || value(0) < 12) return LinkFate::no_packet;
  return to_ethernet(inner, behind(frame, value(0)), take);
}

// Token Ring: access and frame control, addresses, of which the sender's first bit says that a route follows.
LinkFate token_ring(Bytes frame, const Take& take) {
  if (frame.size() < 15) return LinkFate::cut;
  const bool routed = (frame[8] & 0x80) != 0;
  return link::llc(behind(frame, 14U + (routed ? frame[14] & 0x1fU : 0U)), {}, take);
}

LinkFate docsis(Bytes frame, const Take& take) {
  if (frame.size() < 6) return LinkFate::cut;
  if ((frame[0] >> 6) != 0) return LinkFate::no_packet;
  const std::size_t header = 6U + ((frame[0] & 1) != 0 ? frame[1] : 0U);
  if (frame.size() < header + ethernet_header) return LinkFate::cut;
  take(behind(frame, header));
  return LinkFate::read;
}

LinkFate sun_atm(Bytes frame, const Take& take) {
  constexpr unsigned with_llc = 2;
  if (frame.size() < 4) return LinkFate::cut;
  return (frame[0] & 0x0f) == with_llc ? link::llc(behind(frame, 4), {}, take) : LinkFate::no_packet;
}

struct Link {
  std::uint32_t number;
  const char* name;
  Decode decode;  // null: known by name alone
};

// ip_behind<4> of loopback: the family in front of the packet is a number of the host that captured, in its order; the
// packet itself says the same.
constexpr auto links = std::to_array<Link>({
    {0, "BSD loopback", ip_behind<4>},
    {1, "Ethernet", ethernet_behind<0>},
    {6, "Token Ring", token_ring},
    {7, "ARCNET", arcnet<2>},
    {8, "SLIP", ip_behind<16>},
    {9, "PPP", ppp},
    {10, "FDDI", llc_behind<13>},
    {11, "ATM", llc_behind<0>},
    {12, "raw IP", ip_behind<0>},
    {14, "raw IP", ip_behind<0>},
    {15, "SLIP of BSD/OS", ip_behind<24>},
    {16, "PPP of BSD/OS", bsdos_ppp},
    {19, "IP over ATM", ip_over_atm},
    {50, "PPP", ppp},
    {51, "PPPoE", pppoe},
    {99, "Symantec's firewall", typed_at<6, 44>},
    {100, "ATM", llc_behind<0>},
    {101, "raw IP", ip_behind<0>},
    {104, "Cisco HDLC", hdlc},
    {105, "802.11", link::wireless},
    {102, "SLIP of BSD/OS", ip_behind<24>},
    {103, "PPP of BSD/OS", bsdos_ppp},
    {106, "IP over ATM", ip_over_atm},
    {107, "frame relay", frame_relay},
    {108, "BSD loopback", ip_behind<4>},
    {109, "IPsec of OpenBSD", ip_behind<12>},
    {113, "Linux cooked", cooked1},
    {117, "PF log", pf_log},
    {119, "802.11 Prism", link::prism},
    {122, "IP over Fibre Channel", llc_behind<16>},
    {123, "ATM of SunOS", sun_atm},
    {127, "802.11 radiotap", link::radiotap},
    {129, "ARCNET of Linux", arcnet<4>},
    {138, "IP over IEEE 1394", typed_at<16, 18>},
    {143, "DOCSIS", docsis},
    {147, "user 0", nullptr},
    {149, "PKTAP", pktap},
    {163, "802.11 AVS", link::avs},
    {166, "PPP with direction", pppd},
    {167, "PPPoE of Juniper", juniper<1>},
    {178, "Ethernet of Juniper", juniper<1>},
    {179, "PPP of Juniper", juniper<9>},
    {180, "frame relay of Juniper", juniper<107>},
    {181, "Cisco HDLC of Juniper", juniper<104>},
    {187, "Bluetooth HCI", nullptr},
    {189, "USB", nullptr},
    {192, "PPI", ppi},
    {195, "IEEE 802.15.4", nullptr},
    {201, "Bluetooth HCI", nullptr},
    {204, "PPP with direction", directed_ppp},
    {205, "Cisco HDLC with direction", directed_hdlc},
    {206, "frame relay with direction", directed_relay},
    {215, "IEEE 802.15.4", nullptr},
    {219, "MPLS", link::mpls},
    {220, "USB", nullptr},
    {226, "Solaris ipnet", ip_behind<24>},
    {227, "CAN", nullptr},
    {228, "raw IPv4", ip_behind<0>},
    {229, "raw IPv6", ip_behind<0>},
    {230, "IEEE 802.15.4", nullptr},
    {239, "NFLOG", nflog},
    {240, "netANALYZER", ethernet_behind<4>},
    {241, "netANALYZER transparent", ethernet_behind<12>},
    {242, "IP over InfiniBand", typed_at<40, 44>},
    {249, "USB", nullptr},
    {253, "netlink", nullptr},
    {258, "PKTAP", pktap},
    {259, "EPON", ethernet_behind<8>},
    {274, "Ethernet with preamble", ethernet_behind<8>},
    {276, "Linux cooked v2", cooked2},
    {281, "Ethernet with Broadcom's tag", tagged<4>},
    {282, "Ethernet behind Broadcom's tag", ethernet_behind<4>},
    {283, "IEEE 802.15.4", nullptr},
    {284, "Ethernet with Marvell's tag", tagged<4>},
    {285, "Ethernet with Marvell's tag of a type", tagged<8>},
});

const Link* find(std::uint32_t number) {
  const auto* const found = std::ranges::find(links, number, &Link::number);
  return found == links.end() ? nullptr : found;
}

}  // namespace

bool is_read_link(std::uint32_t link) {
  const Link* const known = find(link);
  return known != nullptr && known->decode != nullptr;
}

std::string link_text(std::uint32_t link) {
  const Link* const known = find(link);
  return std::to_string(link) + (known == nullptr ? "" : std::string(" (") + known->name + ")");
}

LinkFate to_ethernet(std::uint32_t link, Bytes frame, const Take& take) {
  return is_read_link(link) ? find(link)->decode(frame, take) : LinkFate::other_link;
}

}  // namespace sluice::port
