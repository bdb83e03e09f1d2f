#include "function/acl/frame_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using lookup::acl::Key4;
using lookup::acl::Key6;
using packet::Bytes;
using packet::PacketBuilder;

PacketBuilder v4() {
  return PacketBuilder().ipv4("192.0.2.1", "198.51.100.2");
}
PacketBuilder v6() {
  return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2");
}

// In memory of its own length, so that a sanitizer sees every byte read behind it.
struct Made {
  KeyKind kind;
  std::string text;  // ports, protocol, flags
  bool plain;
};
template <typename Key>
std::string text(const Key& key) {
  return std::to_string(key.source_port[0] * 256 + key.source_port[1]) + ">" +
         std::to_string(key.destination_port[0] * 256 + key.destination_port[1]) + " p" + std::to_string(key.protocol) +
         " f" + std::to_string(key.flags);
}
// What make_plain_key() makes a key of, make_key() makes the same of.
bool is_plain(const std::uint8_t* frame, std::size_t length, KeyKind kind, const Key4& key) {
  Key4 plain;
  std::memset(&plain, 0x5a, sizeof plain);
  if (!make_plain_key(frame, static_cast<std::uint32_t>(length), plain)) return false;
  EXPECT_EQ(kind, KeyKind::ipv4);
  EXPECT_EQ(std::memcmp(&plain, &key, offsetof(Key4, tags)), 0) << text(plain) << " is " << text(key);
  return true;
}
Made key_of(const Bytes& frame) {
  const auto exact = std::make_unique<std::uint8_t[]>(frame.size());
  std::copy(frame.begin(), frame.end(), exact.get());
  Key4 key4;
  Key6 key6;
  std::memset(&key4, 0xa5, sizeof key4);
  std::memset(&key6, 0xa5, sizeof key6);
  const KeyKind kind = make_key(exact.get(), static_cast<std::uint32_t>(frame.size()), key4, key6);
  const bool plain = is_plain(exact.get(), frame.size(), kind, key4);
  if (kind == KeyKind::ipv4) {
    EXPECT_EQ(Bytes(key4.source, key4.source + 4), (Bytes{192, 0, 2, 1}));
    EXPECT_EQ(Bytes(key4.destination, key4.destination + 4), (Bytes{198, 51, 100, 2}));
    return {kind, text(key4), plain};
  }
  if (kind == KeyKind::ipv6) {
    EXPECT_EQ(key6.source[15], 1);
    EXPECT_EQ(key6.destination[15], 2);
    return {kind, text(key6), plain};
  }
  return {kind, "", plain};
}

struct Case {
  const char* name;
  Bytes frame;
  KeyKind kind;
  const char* text = "";
};

// The outermost tag's.
Bytes of_type(std::uint16_t ethertype, Bytes frame) {
  packet::header_at<packet::EthernetHeader>(frame.data(), 0).ethertype = packet::be16(ethertype);
  return frame;
}

const Bytes eight_of_tcp = {0, 80, 0, 81, 0, 0, 0, 0};

TEST(FrameKey, Table) {
  const Case cases[] = {
      {"TCP", v4().tcp(1000, 80).tcp_flags(0x12).build(), KeyKind::ipv4, "1000>80 p6 f18"},
      {"UDP", v4().udp(53, 5353).build(), KeyKind::ipv4, "53>5353 p17 f0"},
      {"UDP with padding", v4().udp(53, 5353).pad_to(60).build(), KeyKind::ipv4, "53>5353 p17 f0"},
      {"ICMP type", v4().icmp(8, 0).build(), KeyKind::ipv4, "0>0 p1 f8"},
      {"IP options", v4().options({1, 1, 1, 1}).tcp(7, 8).build(), KeyKind::ipv4, "7>8 p6 f16"},
      {"other protocol", v4().protocol(89).payload(30).build(), KeyKind::ipv4, "0>0 p89 f0"},
      {"no payload", v4().protocol(89).build(), KeyKind::ipv4, "0>0 p89 f0"},
      {"first fragment", v4().fragment(0, true).udp(1, 2).payload(16).build(), KeyKind::ipv4, "1>2 p17 f0"},
      {"later fragment", v4().fragment(1480, false).udp(1, 2).payload(16).build(), KeyKind::ipv4, "0>0 p17 f0"},
      {"later TCP fragment", v4().fragment(16, false).tcp(1, 2).payload(16).build(), KeyKind::ipv4, "0>0 p6 f0"},
      {"TCP fragment at 1", v4().fragment(8, false).tcp(1, 2).payload(16).build(), KeyKind::malformed},
      {"UDP fragment at 1", v4().fragment(8, false).udp(1, 2).payload(16).build(), KeyKind::ipv4, "0>0 p17 f0"},
      {"tiny first fragment", v4().fragment(0, true).protocol(6).payload(eight_of_tcp).build(), KeyKind::malformed},
      {"TCP without flags", v4().protocol(6).payload(13).build(), KeyKind::malformed},
      {"TCP up to its flags", v4().protocol(6).payload(14).build(), KeyKind::ipv4, "1>515 p6 f13"},
      {"UDP without ports", v4().protocol(17).payload(3).build(), KeyKind::malformed},
      {"ICMP without type", v4().protocol(1).build(), KeyKind::malformed},
      {"version 6 in IPv4", v4().udp(1, 2).ip_version(6).build(), KeyKind::malformed},
      {"short header", v4().udp(1, 2).ihl(4).build(), KeyKind::malformed},
      {"header behind the packet", v4().udp(1, 2).ihl(15).build(), KeyKind::malformed},
      {"longer than the frame", v4().udp(1, 2).ip_length(100).build(), KeyKind::malformed},
      {"shorter than the header", v4().udp(1, 2).ip_length(19).build(), KeyKind::malformed},
      {"ports behind the packet's end", v4().udp(1, 2).ip_length(22).build(), KeyKind::malformed},
      {"wrong checksum", v4().udp(1, 2).ip_checksum(1).build(), KeyKind::ipv4, "1>2 p17 f0"},
      {"tagged", v4().vlan(5).udp(1, 2).build(), KeyKind::ipv4, "1>2 p17 f0"},
      {"four tags", v4().vlan(5).vlan(6).vlan(7).vlan(8).udp(1, 2).build(), KeyKind::ipv4, "1>2 p17 f0"},
      {"five tags", v4().vlan(5).vlan(6).vlan(7).vlan(8).vlan(9).udp(1, 2).build(), KeyKind::ipv4, "1>2 p17 f0"},
      {"tagged with 0x9100", of_type(0x9100, v4().vlan(5).udp(1, 2).build()), KeyKind::ipv4, "1>2 p17 f0"},
      {"two tags, 0x9100", of_type(0x9100, v4().vlan(5).vlan(6).udp(1, 2).build()), KeyKind::ipv4, "1>2 p17 f0"},
      {"two tags, 0x88a8", of_type(0x88a8, v4().vlan(5).vlan(6).udp(1, 2).build()), KeyKind::ipv4, "1>2 p17 f0"},
      {"0x9200", of_type(0x9200, v4().vlan(5).udp(1, 2).build()), KeyKind::not_ip},
      {"MPLS", of_type(0x8847, v4().vlan(5).udp(1, 2).build()), KeyKind::not_ip},
      {"PPPoE", of_type(0x8864, v4().vlan(5).udp(1, 2).build()), KeyKind::not_ip},
      {"LLC/SNAP", of_type(50, v4().vlan(5).udp(1, 2).build()), KeyKind::not_ip},
      {"UDP-Lite", v4().protocol(136).payload({0, 80, 0, 81, 0, 0, 0, 0}).build(), KeyKind::ipv4, "80>81 p136 f0"},
      {"GRE", v4().protocol(47).payload(40).build(), KeyKind::ipv4, "0>0 p47 f0"},
      {"AH ends it", v6().protocol(51).payload(60).build(), KeyKind::ipv6, "0>0 p51 f0"},
      {"ARP", PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").build(), KeyKind::not_ip},
      {"another ethertype", PacketBuilder().ethertype(0x88b5).payload(50).build(), KeyKind::not_ip},
      {"tagged ARP", PacketBuilder().vlan(5).arp_request("10.0.0.1", "10.0.0.2").build(), KeyKind::not_ip},
      {"nothing", {}, KeyKind::not_ip},
      {"TCP over IPv6", v6().tcp(1000, 80).tcp_flags(2).build(), KeyKind::ipv6, "1000>80 p6 f2"},
      {"ICMPv6 type", v6().icmp6(135, 0).build(), KeyKind::ipv6, "0>0 p58 f135"},
      {"hop-by-hop", v6().extension(0, {1, 0}).udp(3, 4).build(), KeyKind::ipv6, "3>4 p17 f0"},
      {"three extensions", v6().extension(0, {1}).extension(43, Bytes(20)).extension(60, {1}).udp(3, 4).build(),
       KeyKind::ipv6, "3>4 p17 f0"},
      {"ESP ends it", v6().protocol(50).payload(20).build(), KeyKind::ipv6, "0>0 p50 f0"},
      {"no next header", v6().protocol(59).build(), KeyKind::ipv6, "0>0 p59 f0"},
      {"first IPv6 fragment", v6().fragment(0, true).udp(3, 4).payload(16).build(), KeyKind::ipv6, "3>4 p17 f0"},
      {"later IPv6 fragment", v6().fragment(1480, false).udp(3, 4).payload(16).build(), KeyKind::ipv6, "0>0 p17 f0"},
      {"IPv6 TCP fragment at 1", v6().fragment(8, false).tcp(3, 4).payload(16).build(), KeyKind::malformed},
      {"extension behind the packet", v6().protocol(60).payload({17, 9, 0, 0, 0, 0, 0, 0}).build(), KeyKind::malformed},
      {"extension cut", v6().protocol(60).payload({17, 0, 0, 0}).build(), KeyKind::malformed},
      {"version 4 in IPv6", v6().udp(1, 2).ip_version(4).build(), KeyKind::malformed},
      {"IPv6 longer than the frame", v6().udp(1, 2).ip_length(100).build(), KeyKind::malformed},
  };
  for (const Case& c : cases) {
    const Made made = key_of(c.frame);
    EXPECT_EQ(made.kind, c.kind) << c.name;
    EXPECT_EQ(made.text, c.text) << c.name;
  }
}

TEST(FrameKey, PlainOnes) {
  struct Case {
    const char* name;
    Bytes frame;
    bool plain;
  };
  const Case cases[] = {
      {"TCP", v4().tcp(1000, 80).tcp_flags(0x12).build(), true},
      {"TCP, padded", v4().tcp(1000, 80).tcp_flags(0x12).pad_to(60).build(), true},
      {"UDP", v4().udp(1, 2).build(), true},
      {"UDP, padded", v4().udp(1, 2).payload(5).pad_to(60).build(), true},
      {"wrong checksum", v4().udp(1, 2).payload(30).ip_checksum(1).build(), true},
      {"as long as the frame", v4().udp(1, 2).payload(30).ip_length(58).build(), true},
      {"shorter than the frame", v4().udp(1, 2).payload(30).ip_length(34).build(), true},
      {"TCP up to its flags", v4().protocol(6).payload(14).build(), false},
      {"first fragment", v4().fragment(0, true).udp(1, 2).payload(16).build(), false},
      {"later fragment", v4().fragment(1480, false).udp(1, 2).payload(16).build(), false},
      {"TCP fragment at 1", v4().fragment(8, false).tcp(1, 2).payload(16).build(), false},
      {"longer than the frame", v4().udp(1, 2).payload(30).ip_length(59).build(), false},
      {"much longer than the frame", v4().tcp(1, 2).payload(30).ip_length(65535).build(), false},
      {"no space for UDP", v4().udp(1, 2).payload(30).ip_length(27).build(), false},
      {"IP options", v4().options({1, 1, 1, 1}).tcp(7, 8).build(), false},
      {"version 6 in IPv4", v4().tcp(1, 2).ip_version(6).build(), false},
      {"ICMP", v4().icmp(8, 0).payload(30).build(), false},
      {"tagged", v4().vlan(5).tcp(1, 2).build(), false},
      {"IPv6", v6().tcp(1, 2).build(), false},
  };
  for (const Case& c : cases) EXPECT_EQ(key_of(c.frame).plain, c.plain) << c.name;
}

TEST(FrameKey, IsFoundBehindAnyNumberOfExtensions) {
  PacketBuilder builder = v6();
  for (int i = 0; i < 40; ++i) builder.extension(60, {1});
  EXPECT_EQ(key_of(builder.udp(3, 4).build()).text, "3>4 p17 f0");
}

// RFC 2675: hosts take all of the frame.
TEST(FrameKey, WithoutALengthBeforeHopByHopOptionsItIsAsLongAsTheFrame) {
  EXPECT_EQ(key_of(v6().extension(0, {1}).udp(3, 4).ip_length(0).build()).text, "3>4 p17 f0");
  EXPECT_EQ(key_of(v6().udp(3, 4).ip_length(0).build()).kind, KeyKind::malformed);
}

// Cut to every length, a frame is never taken for anything but IP that is malformed, or for no IP at all before its
// ethertype is there.
TEST(FrameKey, EveryLength) {
  for (const Bytes& frame :
       {v4().options({1, 1, 1, 1}).tcp(1, 2).build(), v4().vlan(1).vlan(2).udp(1, 2).payload(20).build(),
        v6().extension(0, {1}).fragment(0, true).tcp(1, 2).payload(16).build(), v6().vlan(3).icmp6(1, 1).build()}) {
    ASSERT_NE(key_of(frame).text, "");
    for (std::size_t length = 0; length < frame.size(); ++length) {
      const KeyKind kind = key_of(Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length))).kind;
      EXPECT_EQ(kind, length < 14 ? KeyKind::not_ip : KeyKind::malformed) << length << " of " << frame.size();
    }
  }
}

TEST(FrameKey, RandomBytesBehindAnIpEthertypeStayInside) {
  std::mt19937 random(7);
  std::size_t keys = 0, plain = 0;
  for (int i = 0; i < 200'000; ++i) {
    const bool six = random() % 2 == 0;
    const std::size_t length = 14 + random() % 120;
    const auto frame = std::make_unique<std::uint8_t[]>(length);
    std::generate_n(frame.get(), length, [&] { return static_cast<std::uint8_t>(random()); });
    frame[12] = six ? 0x86 : 0x08;
    frame[13] = six ? 0xdd : 0x00;
    if (length > 21) {  // so that lengths are right now and then
      const std::size_t claimed = length - 14 - (six ? 40 : 0) + 1 - random() % 6;
      frame[14] = six ? 0x60 : 0x45;
      frame[six ? 18 : 16] = 0;
      frame[six ? 19 : 17] = static_cast<std::uint8_t>(claimed);
    }
    if (!six && length > 23 && random() % 2 == 0) {  // mostly no fragment but a first one, of TCP or UDP
      frame[20] &= random() % 8 == 0 ? 0xff : 0xe0;
      frame[21] = 0;
      frame[23] = random() % 2 == 0 ? 6 : 17;
    }
    if (six && length > 20) frame[20] = static_cast<std::uint8_t>("\0\x2b\x2c\x3c\x06\x11"[random() % 6]);
    Key4 key4;
    Key6 key6;
    const KeyKind kind = make_key(frame.get(), static_cast<std::uint32_t>(length), key4, key6);
    plain += is_plain(frame.get(), length, kind, key4) ? 1 : 0;
    keys += kind == KeyKind::ipv4 || kind == KeyKind::ipv6 ? 1 : 0;
  }
  EXPECT_GT(keys, 20'000U);
  EXPECT_GT(plain, 9'000U);
}

TEST(SetDscp, ChangesItsSixBitsAndTheChecksum) {
  for (unsigned tos = 0; tos < 256; tos += 5) {
    for (const std::uint8_t dscp : {0, 1, 46, 63}) {
      const auto wanted = static_cast<std::uint8_t>(dscp << 2 | (tos & 3));
      for (PacketBuilder base : {v4(), v4().vlan(9), v6(), v6().vlan(9)}) {
        Bytes frame = base.tos(static_cast<std::uint8_t>(tos)).udp(1, 2).build();
        set_dscp(frame.data(), static_cast<std::uint32_t>(frame.size()), dscp);
        EXPECT_EQ(frame, base.tos(wanted).build()) << tos << " " << int{dscp};
      }
    }
  }
}

}  // namespace
}  // namespace sluice::function
