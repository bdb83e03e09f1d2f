// Known answers: a frame that Linux' vxlan device sent, RFC 6040's figure 4 whole, and what is refused.
#include "packet/vxlan.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/offload.h"

namespace sluice::packet {
namespace {

const IpAddress local4 = *IpAddress::parse("192.0.2.1"), remote4 = *IpAddress::parse("192.0.2.2");
const IpAddress local6 = *IpAddress::parse("2001:db8::1"), remote6 = *IpAddress::parse("2001:db8::2");

VxlanFront::Options options(int family) {
  VxlanFront::Options o;
  o.local = family == 4 ? local4 : local6;
  o.remote = family == 4 ? remote4 : remote6;
  o.source_mac = {{2, 0, 0, 0, 0, 1}};
  o.next_hop_mac = {{2, 0, 0, 0, 0, 2}};
  o.vni = 100;
  return o;
}

Bytes inner(std::uint8_t tos = 0, int family = 4) {
  PacketBuilder builder;
  builder.eth("02:00:00:00:00:0a", "02:00:00:00:00:0b");
  if (family == 4) {
    builder.ipv4("10.9.0.1", "10.9.0.2");
  } else {
    builder.ipv6("2001:db8:9::1", "2001:db8:9::2");
  }
  return builder.tos(tos).ttl(33).udp(1000, 2000).payload(40).build();
}

Bytes wrapped(const VxlanFront::Options& o, const Bytes& frame, std::uint16_t id = 7) {
  const VxlanFront front(o);
  Bytes all(front.bytes());
  all.insert(all.end(), frame.begin(), frame.end());
  const auto length = static_cast<std::uint32_t>(frame.size());
  std::uint8_t* const at = all.data() + front.bytes();
  front.write(at, length, inner_ip(at, length), vxlan_source_port(at, length), id);
  return all;
}

VxlanFault check(const Bytes& frame, VxlanView& view, bool zero6 = false) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  EXPECT_TRUE(find_vxlan(frame.data(), length, view));
  return check_vxlan(frame.data(), length, zero6, view);
}

// RFC 6040 figure 4: rows by the inner field, columns by the outer one: not-ECT, ECT(0), ECT(1), CE.
TEST(Vxlan, EcnIsCombinedAsRfc6040Says) {
  constexpr std::array<Ecn, 4> order = {not_ect, ect0, ect1, ce};
  constexpr int drop = -1;
  constexpr int table[4][4] = {
      {not_ect, not_ect, not_ect, drop}, {ect0, ect0, ect1, ce}, {ect1, ect1, ect1, ce}, {ce, ce, ce, ce}};
  for (unsigned in = 0; in < 4; ++in) {
    for (unsigned out = 0; out < 4; ++out) {
      const std::optional<Ecn> got = ecn_unwrapped(order[in], order[out]);
      EXPECT_EQ(got ? int{*got} : drop, table[in][out]) << "inner " << in << ", outer " << out;
    }
  }
}

TEST(Vxlan, EcnIsWrittenWithTheChecksumToMatch) {
  for (const int family : {4, 6}) {
    for (const std::uint8_t ecn : {0, 1, 2, 3}) {
      Bytes frame = inner(0xb9, family);
      const InnerIp ip = inner_ip(frame.data(), static_cast<std::uint32_t>(frame.size()));
      set_ecn(frame.data(), ip, static_cast<Ecn>(ecn));
      EXPECT_EQ(frame, inner(0xb8 | ecn, family));
    }
  }
}

TEST(Vxlan, FrontHasTheHeadersOfRfc7348) {
  VxlanFront::Options o = options(4);
  o.dont_fragment = VxlanFront::DontFragment::set;
  const Bytes frame = wrapped(o, inner());
  const Bytes expected = {
      2,    0,    0,    0,    0,    2,    2,    0,    0,    0,    0,    1,    0x08, 0x00,  // Ethernet
      0x45, 0x00, 0x00, 0x76, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb6, 0x73, 192,  0,
      2,    1,    192,  0,    2,    2};  // IPv4, 118 bytes
  EXPECT_EQ(Bytes(frame.begin(), frame.begin() + 34), expected);
  EXPECT_GE(frame[34], 0xc0);  // a dynamic port
  const Bytes rest = {0x12, 0xb5, 0x00, 0x62, 0x00, 0x00, 0x08, 0, 0, 0, 0, 0, 100, 0};
  EXPECT_EQ(Bytes(frame.begin() + 36, frame.begin() + 50), rest);
}

TEST(Vxlan, WhatIsWrappedIsFoundAgain) {
  for (const int family : {4, 6}) {
    for (const bool checksum : {false, true}) {
      VxlanFront::Options o = options(family);
      o.udp_checksum = checksum;
      o.vni = most_vni;
      const Bytes inside = inner();
      const Bytes frame = wrapped(o, inside);
      VxlanView view;
      ASSERT_EQ(check(frame, view, !checksum), VxlanFault::none) << family << checksum;
      EXPECT_EQ(view.family, family);
      EXPECT_EQ(view.vni, most_vni);
      EXPECT_EQ(view.port, vxlan_port);
      EXPECT_EQ(IpAddress::from_bytes(family, view.source), o.local);
      EXPECT_EQ(IpAddress::from_bytes(family, view.destination), o.remote);
      EXPECT_EQ(Bytes(frame.begin() + view.inner, frame.end()), inside);
      EXPECT_EQ(view.inner_length, inside.size());
    }
  }
}

TEST(Vxlan, FieldsFollowTheInnerPacketWhereAskedTo) {
  for (const int family : {4, 6}) {
    VxlanFront::Options o = options(family);
    o.dscp = 10;
    InnerIp outer;
    const auto outer_of = [&](const Bytes& frame) {
      return inner_ip(frame.data(), static_cast<std::uint32_t>(frame.size()));
    };
    outer = outer_of(wrapped(o, inner(46 << 2 | ect0)));
    EXPECT_EQ(outer.tos, 10 << 2 | ect0);
    EXPECT_EQ(outer.ttl, 64);
    o.inherit_dscp = o.inherit_ttl = true;
    outer = outer_of(wrapped(o, inner(46 << 2 | ce)));
    EXPECT_EQ(outer.tos, 46 << 2 | ce);
    EXPECT_EQ(outer.ttl, 33);
    outer = outer_of(wrapped(o, PacketBuilder().arp_request("10.9.0.1", "10.9.0.2").build()));
    EXPECT_EQ(outer.tos, 0);
    EXPECT_EQ(outer.ttl, 64);
  }
}

TEST(Vxlan, DontFragmentIsSetUnsetOrInherited) {
  using DontFragment = VxlanFront::DontFragment;
  const Bytes with = PacketBuilder().ipv4("10.9.0.1", "10.9.0.2").dont_fragment().udp(1, 2).payload(9).build();
  const auto outer_df = [&](DontFragment df, const Bytes& inside) {
    VxlanFront::Options o = options(4);
    o.dont_fragment = df;
    return (wrapped(o, inside)[20] & 0x40) != 0;
  };
  EXPECT_TRUE(outer_df(DontFragment::set, inner()));
  EXPECT_FALSE(outer_df(DontFragment::unset, with));
  EXPECT_TRUE(outer_df(DontFragment::inherit, with));
  EXPECT_FALSE(outer_df(DontFragment::inherit, inner()));
  EXPECT_TRUE(outer_df(DontFragment::inherit, inner(0, 6)));
}

TEST(Vxlan, FlowsKeepTheirSourcePort) {
  const auto port = [](std::uint16_t from, std::size_t payload) {
    const Bytes frame = PacketBuilder().ipv4("10.9.0.1", "10.9.0.2").udp(from, 80).payload(payload).build();
    return vxlan_source_port(frame.data(), static_cast<std::uint32_t>(frame.size()));
  };
  EXPECT_EQ(port(1000, 10), port(1000, 500));
  EXPECT_NE(port(1000, 10), port(1001, 10));
  EXPECT_GE(port(1000, 10), 49152);
}

struct Refused {
  const char* what;
  VxlanFault fault;
  int family;
  bool checksum;
  void (*spoil)(Bytes&);
};

TEST(Vxlan, WhatIsWrongIsRefused) {
  const Refused cases[] = {
      {"IPv4 checksum", VxlanFault::header_checksum, 4, false, [](Bytes& f) { f[24] ^= 1; }},
      {"packet longer than the frame", VxlanFault::length, 6, true, [](Bytes& f) { f[19] += 1; }},
      {"datagram longer than the packet", VxlanFault::length, 4, false, [](Bytes& f) { f[39] += 1; }},
      {"no space for an inner header", VxlanFault::length, 4, false, [](Bytes& f) { f[38] = 0, f[39] = 29; }},
      {"UDP checksum, IPv4", VxlanFault::udp_checksum, 4, true, [](Bytes& f) { f[80] ^= 1; }},
      {"UDP checksum, IPv6", VxlanFault::udp_checksum, 6, true, [](Bytes& f) { f[100] ^= 1; }},
      {"no UDP checksum, IPv6", VxlanFault::zero_checksum, 6, false, [](Bytes&) {}},
      {"no VNI", VxlanFault::no_vni, 4, false, [](Bytes& f) { f[42] = 0; }},
  };
  for (const Refused& one : cases) {
    VxlanFront::Options o = options(one.family);
    o.udp_checksum = one.checksum;
    Bytes frame = wrapped(o, inner());
    one.spoil(frame);
    VxlanView view;
    EXPECT_EQ(check(frame, view), one.fault) << one.what;
  }
}

TEST(Vxlan, ReservedBitsAndPaddingCountForNothing) {
  Bytes frame = wrapped(options(4), inner());
  const std::size_t length = frame.size();
  frame[42] = 0xff;
  frame[43] = frame[44] = frame[45] = frame[49] = 0xff;
  frame.resize(length + 6);
  VxlanView view;
  ASSERT_EQ(check(frame, view), VxlanFault::none);
  EXPECT_EQ(view.vni, 100U);
  EXPECT_EQ(view.inner + view.inner_length, length);
}

TEST(Vxlan, FragmentsAreDistinguished) {
  VxlanView view;
  const Bytes first =
      PacketBuilder().ipv4("192.0.2.2", "192.0.2.1").fragment(0, true).udp(50000, 4789).payload(64).build();
  ASSERT_TRUE(find_vxlan(first.data(), static_cast<std::uint32_t>(first.size()), view));
  EXPECT_TRUE(view.fragment);
  EXPECT_EQ(view.port, 4789);
  const Bytes later =
      PacketBuilder().ipv4("192.0.2.2", "192.0.2.1").fragment(64, false).udp(50000, 4789).payload(64).build();
  ASSERT_TRUE(find_vxlan(later.data(), static_cast<std::uint32_t>(later.size()), view));
  EXPECT_TRUE(view.fragment);
  EXPECT_EQ(view.port, 0);
}

// What a kernel leaves to a card: one frame for the tunnel that is many on the wire.
TEST(Vxlan, ALongFrameIsCutUpWithinItsTunnel) {
  constexpr std::size_t piece = 1398;
  const Bytes inside = PacketBuilder().ipv4("10.9.0.1", "10.9.0.2").tcp(1000, 2000).payload(20'000).build();
  for (const int family : {4, 6}) {
    for (const bool checksum : {false, true}) {
      VxlanFront::Options o = options(family);
      o.udp_checksum = checksum;
      const Bytes whole = wrapped(o, inside);
      Segmenter in_tunnel, alone;
      ASSERT_TRUE(in_tunnel.begin(whole.data(), whole.size(), Segmentation::tcp, piece, vxlan_front(family) + 34));
      ASSERT_TRUE(alone.begin(inside.data(), inside.size(), Segmentation::tcp, piece, 34));
      while (!alone.done()) {
        Bytes expected(alone.next_length()), segment(in_tunnel.next_length());
        alone.write_next(expected.data());
        in_tunnel.write_next(segment.data());
        VxlanView view;
        ASSERT_EQ(check(segment, view, !checksum), VxlanFault::none);
        EXPECT_EQ(Bytes(segment.begin() + view.inner, segment.end()), expected);
        EXPECT_EQ(view.inner + view.inner_length, segment.size());
        EXPECT_EQ(header_at<UdpHeader>(segment.data(), view.udp).checksum != 0, checksum);
      }
      EXPECT_TRUE(in_tunnel.done());
    }
  }
}

TEST(Vxlan, OtherFramesAreNone) {
  VxlanView view;
  for (const Bytes& frame :
       {PacketBuilder().arp_request("10.9.0.1", "10.9.0.2").pad_to(60).build(),
        PacketBuilder().ipv4("192.0.2.2", "192.0.2.1").tcp(4789, 4789).payload(60).build(),
        PacketBuilder().vlan(5).ipv4("192.0.2.2", "192.0.2.1").udp(4789, 4789).payload(60).build()}) {
    EXPECT_FALSE(find_vxlan(frame.data(), static_cast<std::uint32_t>(frame.size()), view));
  }
}

}  // namespace
}  // namespace sluice::packet
