#include "packet/metadata.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "packet/builder.h"

namespace sluice::packet {
namespace {

Metadata metadata_of(const Bytes& frame, Depth depth = Depth::transport) {
  const Bytes exact = frame;  // reads behind it are seen
  Metadata meta;
  read_metadata(exact.data(), static_cast<std::uint32_t>(exact.size()), depth, meta);
  return meta;
}

// "network transport payload payload_end end protocol source>destination", and what is odd about it.
std::string text(const Metadata& m) {
  std::string text = "v" + std::to_string(m.family) + " ";
  if (m.family == 0) return text + "type " + std::to_string(m.type) + " at " + std::to_string(m.network);
  for (const std::uint32_t offset : {m.network, m.transport, m.payload, m.payload_end, m.end}) {
    text += std::to_string(offset) + " ";
  }
  text += "p" + std::to_string(m.protocol);
  if (m.has_ports) text += " " + std::to_string(m.source_port) + ">" + std::to_string(m.destination_port);
  if (!m.has_header) text += " no header";
  if (!m.whole) text += " cut";
  if (m.chain_cut) text += " chain cut";
  if (m.routed) text += " routed";
  if (m.fragment()) text += " fragment " + std::to_string(m.fragment_offset) + (m.more_fragments ? "+" : "");
  if (m.hides_transport) text += " hides";
  return text;
}

PacketBuilder v4() {
  return PacketBuilder().ipv4("192.0.2.1", "198.51.100.2");
}
PacketBuilder v6() {
  return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2");
}

TEST(Metadata, Table) {
  PacketBuilder nine_tags = v4(), nine_extensions = v6();
  for (std::uint16_t i = 0; i < 9; ++i) {
    nine_tags.vlan(i);
    nine_extensions.extension(60, {1});
  }
  Bytes jumbogram = v6().extension(0, {1}).udp(3, 4).payload(6).build();
  jumbogram[18] = jumbogram[19] = 0;
  const struct {
    const char* name;
    Bytes frame;
    const char* text;
  } cases[] = {
      {"TCP", v4().tcp(1000, 80).payload(5).build(), "v4 14 34 54 59 59 p6 1000>80"},
      {"UDP", v4().udp(53, 5353).payload(5).build(), "v4 14 34 42 47 47 p17 53>5353"},
      {"padding", v4().udp(53, 5353).payload(5).pad_to(60).build(), "v4 14 34 42 47 47 p17 53>5353"},
      {"UDP says less", v4().udp(53, 5353).payload(5).udp_length(10).build(), "v4 14 34 42 44 47 p17 53>5353"},
      {"UDP says more", v4().udp(53, 5353).payload(5).udp_length(90).build(), "v4 14 34 42 47 47 p17 53>5353"},
      {"UDP says nothing", v4().udp(53, 5353).payload(5).udp_length(0).build(), "v4 14 34 42 42 47 p17 53>5353"},
      {"the same over IPv6", v6().udp(3, 4).payload(5).udp_length(0).build(), "v6 14 54 62 67 67 p17 3>4"},
      {"UDP-Lite", v4().protocol(136).payload({0, 1, 0, 2, 0, 0, 0, 0, 9}).build(), "v4 14 34 42 43 43 p136 1>2"},
      {"SCTP", v4().protocol(132).payload({0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0}).build(), "v4 14 34 46 46 46 p132 1>2"},
      {"DCCP", v4().protocol(33).payload({0, 1, 0, 2, 0, 0}).build(), "v4 14 34 34 40 40 p33 1>2 no header"},
      {"ICMP", v4().icmp(8, 0).payload(3).build(), "v4 14 34 42 45 45 p1"},
      {"ESP", v4().protocol(50).payload(20).build(), "v4 14 34 34 54 54 p50 no header"},
      {"IPv4 options", v4().options({1, 1, 1, 1}).udp(7, 8).build(), "v4 14 38 46 46 46 p17 7>8"},
      {"TCP cut behind its ports", v4().protocol(6).payload(4).build(), "v4 14 34 34 38 38 p6 1>515 no header"},
      {"TCP without ports", v4().protocol(6).payload(3).build(), "v4 14 34 34 37 37 p6 no header"},
      {"first fragment", v4().fragment(0, true).udp(1, 2).payload(8).udp_length(16).build(),
       "v4 14 34 42 50 50 p17 1>2 fragment 0+"},
      {"later fragment", v4().fragment(1480, false).udp(1, 2).payload(8).build(),
       "v4 14 34 34 42 42 p17 no header fragment 185"},
      {"TCP fragment at 1", v4().fragment(8, true).tcp(1, 2).payload(8).build(),
       "v4 14 34 34 42 42 p6 no header fragment 1+ hides"},
      {"two tags", v4().vlan(1).vlan(2).udp(1, 2).build(), "v4 22 42 50 50 50 p17 1>2"},
      {"nine tags", nine_tags.udp(1, 2).build(), "v4 50 70 78 78 78 p17 1>2"},
      {"cut in a tag", v4().vlan(1).udp(1, 2).cut_to(17).build(), "v0 type 33024 at 14"},
      {"ARP", PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build(), "v0 type 2054 at 14"},
      {"no Ethernet header", Bytes(13), "v0 type 0 at 0"},
      {"version 6 in IPv4", v4().udp(1, 2).ip_version(6).build(), "v0 type 2048 at 14"},
      {"short header", v4().udp(1, 2).ihl(4).build(), "v0 type 2048 at 14"},
      {"header behind the packet", v4().udp(1, 2).ihl(15).build(), "v0 type 2048 at 14"},
      {"longer than the frame", v4().udp(1, 2).ip_length(100).build(), "v4 14 34 42 42 42 p17 1>2 cut"},
      {"hop-by-hop", v6().extension(0, {1}).udp(3, 4).build(), "v6 14 62 70 70 70 p17 3>4"},
      {"routing", v6().extension(43, {0, 0}).udp(3, 4).build(), "v6 14 62 70 70 70 p17 3>4 routed"},
      {"nine extension headers", nine_extensions.udp(3, 4).build(), "v6 14 126 134 134 134 p17 3>4"},
      {"AH", v6().protocol(51).payload(8).build(), "v6 14 54 54 62 62 p51 no header"},
      {"first IPv6 fragment", v6().fragment(0, true).udp(3, 4).payload(8).udp_length(16).build(),
       "v6 14 62 70 78 78 p17 3>4 fragment 0+"},
      {"later IPv6 fragment", v6().fragment(1480, false).udp(3, 4).payload(8).build(),
       "v6 14 62 62 70 70 p17 no header fragment 185"},
      {"IPv6 TCP fragment at 1", v6().fragment(8, false).tcp(3, 4).payload(8).build(),
       "v6 14 62 62 70 70 p6 no header fragment 1 hides"},
      {"atomic fragment", v6().fragment(0, false).udp(3, 4).build(), "v6 14 62 70 70 70 p17 3>4"},
      {"extension behind the packet", v6().protocol(60).payload({17, 9, 0, 0, 0, 0, 0, 0}).build(),
       "v6 14 62 62 62 62 p17 no header chain cut"},
      {"extension cut", v6().protocol(60).payload({17, 0, 0, 0}).build(), "v6 14 54 54 58 58 p60 no header chain cut"},
      {"jumbogram", jumbogram, "v6 14 62 70 76 76 p17 3>4"},
      {"IPv6 longer than the frame", v6().udp(1, 2).ip_length(100).build(), "v6 14 54 62 62 62 p17 1>2 cut"},
  };
  for (const auto& c : cases) EXPECT_EQ(text(metadata_of(c.frame)), c.text) << c.name;
}

TEST(Metadata, IsFilledToTheDepthThatIsAskedFor) {
  const Bytes frame = v6().vlan(7).extension(0, {1}).udp(3, 4).payload(5).build();
  const Metadata link = metadata_of(frame, Depth::link);
  EXPECT_EQ(link.type, ethertype_ipv6);
  EXPECT_EQ(link.network, 18U);
  EXPECT_EQ(link.family, 0);
  const Metadata network = metadata_of(frame, Depth::network);
  EXPECT_EQ(network.protocol, protocol_udp);
  EXPECT_EQ(network.transport, 66U);
  EXPECT_FALSE(network.has_ports);
}

TEST(Metadata, IsBrokenWhereIpWasSaidOrATagIsCut) {
  EXPECT_FALSE(metadata_of(v4().udp(1, 2).build()).is_broken());
  EXPECT_FALSE(metadata_of(PacketBuilder().ethertype(0x88b5).payload(50).build()).is_broken());
  EXPECT_FALSE(metadata_of(Bytes(13)).is_broken());
  EXPECT_TRUE(metadata_of(v4().udp(1, 2).ihl(4).build()).is_broken());
  EXPECT_TRUE(metadata_of(v6().udp(1, 2).cut_to(40).build()).is_broken());
  EXPECT_TRUE(metadata_of(v4().vlan(3).udp(1, 2).cut_to(16).build()).is_broken());
}

// A first fragment's headers may go on behind a fragment header of its own: what is behind that counts, and the outer
// one says what it is a fragment of.
TEST(Metadata, FragmentsInFragments) {
  const auto nested = [](std::uint8_t inner_offset) {
    return metadata_of(v6().fragment(0, true)
                           .protocol(protocol_fragment)
                           .payload({17, 0, 0, inner_offset, 0, 0, 0, 9, 0, 3, 0, 4, 0, 16, 0, 0})
                           .build());
  };
  const Metadata first = nested(0);
  EXPECT_EQ(text(first), "v6 14 70 78 78 78 p17 3>4 fragment 0+");
  EXPECT_EQ(first.fragment_protocol, protocol_fragment);
  EXPECT_EQ(first.fragment_header, 54U);
  EXPECT_EQ(first.fragment_named_at, 20U);
  const Metadata later = nested(8);
  EXPECT_EQ(text(later), "v6 14 70 70 78 78 p17 no header fragment 0+");
  EXPECT_TRUE(later.later);
}

TEST(Metadata, APacketGoesOnBehindAh) {
  const Bytes frame = v6().protocol(51).payload({60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0}).build();
  Metadata meta = metadata_of(frame);
  ASSERT_EQ(meta.protocol, 51);
  meta.transport += 12;
  meta.protocol = frame[54];
  walk_extensions(frame.data(), meta);
  EXPECT_EQ(meta.protocol, protocol_udp);
  EXPECT_EQ(meta.transport, 54U + 12 + 8);
}

// --- Tunnels ---

Bytes joined(Bytes front, const Bytes& behind) {
  front.insert(front.end(), behind.begin(), behind.end());
  return front;
}

Bytes packet_of(const PacketBuilder& builder) {
  const Bytes frame = builder.build();
  return {frame.begin() + sizeof(EthernetHeader), frame.end()};
}

struct Inner {
  Tunnel tunnel = Tunnel::none;
  Metadata meta;
};

Inner inner_of(const Bytes& frame) {
  const Bytes exact = frame;
  Inner inner;
  const Metadata outer = metadata_of(exact);
  inner.tunnel = read_inner(exact.data(), static_cast<std::uint32_t>(exact.size()), outer, inner.meta);
  return inner;
}

Bytes of_type(std::uint16_t type, const Bytes& behind) {
  return PacketBuilder().ethertype(type).payload(behind).build();
}
Bytes of_protocol(std::uint8_t protocol, const Bytes& behind) {
  return v4().protocol(protocol).payload(behind).build();
}
Bytes over_udp(std::uint16_t port, const Bytes& behind) {
  return v6().udp(50000, port).payload(behind).build();
}

const Bytes inside4 = packet_of(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(7, 8).payload(3));
const Bytes inside6 = packet_of(PacketBuilder().ipv6("fd00::1", "fd00::2").udp(7, 8).payload(3));
const Bytes inside_frame = PacketBuilder().vlan(9).ipv4("10.0.0.1", "10.0.0.2").udp(7, 8).payload(3).build();
const Bytes pppoe_session = {0x11, 0, 0, 5, 0, static_cast<std::uint8_t>(inside4.size() + 2), 0x00, 0x21};

TEST(Metadata, FindsThePacketInATunnel) {
  const Bytes label = {0, 0, 0x10, 64}, bottom = {0, 0, 0x21, 64}, control_word = {0, 0, 0, 0};
  const struct {
    const char* name;
    Bytes frame;
    Tunnel tunnel;
    std::uint8_t protocol;
    std::uint32_t network;
  } cases[] = {
      {"IPv4 in IPv4", of_protocol(4, inside4), Tunnel::ip, 6, 34},
      {"IPv6 in IPv4", of_protocol(41, inside6), Tunnel::ip, 17, 34},
      {"GRE", of_protocol(47, joined({0, 0, 8, 0}, inside4)), Tunnel::gre, 6, 38},
      {"GRE of IPv6, key and sequence", of_protocol(47, joined({0x30, 0, 0x86, 0xdd, 0, 0, 0, 1, 0, 0, 0, 2}, inside6)),
       Tunnel::gre, 17, 46},
      {"GRE of Ethernet, checksum", of_protocol(47, joined({0x80, 0, 0x65, 0x58, 0, 0, 0, 0}, inside_frame)),
       Tunnel::gre, 17, 60},
      {"MPLS in GRE", of_protocol(47, joined(joined({0, 0, 0x88, 0x47}, bottom), inside4)), Tunnel::gre, 6, 42},
      {"PPTP",
       of_protocol(47, joined({0x30, 0x81, 0x88, 0x0b, 0, 40, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 3, 0x21}, inside4)),
       Tunnel::gre, 6, 53},
      {"VXLAN", over_udp(4789, joined({8, 0, 0, 0, 0, 0, 7, 0}, inside_frame)), Tunnel::vxlan, 17, 88},
      {"VXLAN-GPE of IPv4", over_udp(4790, joined({0x0c, 0, 0, 1, 0, 0, 7, 0}, inside4)), Tunnel::vxlan, 6, 70},
      {"Geneve", over_udp(6081, joined({0, 0, 0x65, 0x58, 0, 0, 7, 0}, inside_frame)), Tunnel::geneve, 17, 88},
      {"Geneve with an option", over_udp(6081, joined({1, 0, 8, 0, 0, 0, 7, 0, 1, 2, 3, 4}, inside4)), Tunnel::geneve,
       6, 74},
      {"GTP-U", over_udp(2152, joined({0x30, 255, 0, static_cast<std::uint8_t>(inside4.size()), 0, 0, 0, 1}, inside4)),
       Tunnel::gtp_u, 6, 70},
      {"GTP-U with an extension header",
       over_udp(2152, joined({0x34, 255, 0, static_cast<std::uint8_t>(inside4.size() + 8), 0, 0, 0, 1, 0, 0, 0, 0x85, 1,
                              0, 9, 0},
                             inside4)),
       Tunnel::gtp_u, 6, 78},
      {"MPLS in UDP", over_udp(6635, joined(bottom, inside6)), Tunnel::mpls, 17, 66},
      {"MPLS in IP", of_protocol(137, joined(bottom, inside6)), Tunnel::mpls, 17, 38},
      {"MPLS", of_type(0x8847, joined(joined(label, bottom), inside4)), Tunnel::mpls, 6, 22},
      {"an Ethernet pseudowire", of_type(0x8847, joined(joined(bottom, control_word), inside_frame)), Tunnel::mpls, 17,
       40},
      {"PPPoE", of_type(0x8864, joined(pppoe_session, inside4)), Tunnel::pppoe, 6, 22},
      {"NSH", of_type(0x894f, joined({0, 2, 1, 3, 0, 0, 1, 255}, inside_frame)), Tunnel::nsh, 17, 40},
      {"NSH of MPLS", of_type(0x894f, joined(joined({0, 2, 1, 5, 0, 0, 1, 255}, bottom), inside6)), Tunnel::nsh, 17,
       26},
      {"behind an extension header", v6().extension(60, {1}).protocol(4).payload(inside4).build(), Tunnel::ip, 6, 62},
  };
  for (const auto& c : cases) {
    const Inner inner = inner_of(c.frame);
    EXPECT_EQ(inner.tunnel, c.tunnel) << c.name;
    EXPECT_EQ(inner.meta.protocol, c.protocol) << c.name;
    EXPECT_EQ(inner.meta.network, c.network) << c.name;
    EXPECT_EQ(inner.meta.source_port, 7) << c.name;
    EXPECT_EQ(inner.meta.payload_end - inner.meta.payload, 3U) << c.name;
    EXPECT_TRUE(inner.meta.is_whole_packet()) << c.name;
    for (std::size_t length = 0; length < c.frame.size(); ++length) {
      const Inner cut = inner_of(Bytes(c.frame.begin(), c.frame.begin() + static_cast<std::ptrdiff_t>(length)));
      EXPECT_FALSE(cut.meta.is_whole_packet()) << c.name << " cut to " << length;
    }
  }
}

TEST(Metadata, FindsNoPacketWhereThereIsNoTunnel) {
  const std::vector<std::pair<const char*, Bytes>> cases = {
      {"TCP", v4().tcp(1, 2).payload(40).build()},
      {"UDP", v4().udp(1, 2).payload(40).build()},
      {"UDP from 4789", v4().udp(4789, 2).payload(joined({8, 0, 0, 0, 0, 0, 7, 0}, inside_frame)).build()},
      {"VXLAN without a VNI", over_udp(4789, joined({0, 0, 0, 0, 0, 0, 7, 0}, inside_frame))},
      {"GTP-U, an echo", over_udp(2152, joined({0x30, 1, 0, 40, 0, 0, 0, 1}, inside4))},
      {"GTP', which is not user traffic", over_udp(2152, joined({0x20, 255, 0, 40, 0, 0, 0, 1}, inside4))},
      {"Geneve of another version", over_udp(6081, joined({0x40, 0, 8, 0, 0, 0, 7, 0}, inside4))},
      {"GRE with routing", of_protocol(47, joined({0x40, 0, 8, 0, 0, 0, 0, 0}, inside4))},
      {"GRE of another version", of_protocol(47, joined({0, 2, 8, 0}, inside4))},
      {"GRE of ARP", of_protocol(47, joined({0, 0, 8, 6}, inside4))},
      {"PPPoE discovery", of_type(0x8863, joined(pppoe_session, inside4))},
      {"PPPoE, LCP", of_type(0x8864, joined({0x11, 0, 0, 5, 0, 6, 0xc0, 0x21}, inside4))},
      {"NSH of another version", of_type(0x894f, joined({0x40, 2, 1, 1, 0, 0, 1, 255}, inside4))},
      {"NSH shorter than its header", of_type(0x894f, joined({0, 1, 1, 1, 0, 0, 1, 255}, inside4))},
      {"a fragment", v4().fragment(0, true).protocol(4).payload(joined(inside4, {0})).build()},
      {"ARP", PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build()},
  };
  for (const auto& [name, frame] : cases) {
    const Inner inner = inner_of(frame);
    EXPECT_EQ(inner.tunnel, Tunnel::none) << name;
    EXPECT_EQ(inner.meta.family, 0) << name;
  }
}

TEST(Metadata, ATunnelInATunnelIsAskedForAgain) {
  const Bytes vxlan =
      over_udp(4789, joined({8, 0, 0, 0, 0, 0, 7, 0},
                            PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").protocol(4).payload(inside4).build()));
  const Inner inner = inner_of(vxlan);
  Metadata innermost;
  EXPECT_EQ(read_inner(vxlan.data(), static_cast<std::uint32_t>(vxlan.size()), inner.meta, innermost), Tunnel::ip);
  EXPECT_EQ(innermost.protocol, protocol_tcp);
  EXPECT_EQ(innermost.destination_port, 8);
}

}  // namespace
}  // namespace sluice::packet
