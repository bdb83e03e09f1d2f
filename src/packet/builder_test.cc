// What the builder writes, byte by byte; the wire bytes were checked with tcpdump, which finds all checksums right.
#include "packet/builder.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

std::string hex(const Bytes& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

TEST(PacketBuilder, WireBytes) {
  const struct {
    const char* what;
    PacketBuilder frame;
    std::string wire;
  } cases[] = {
      {"udp", PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(1234, 80).payload(3),
       "02000000000202000000000108004500001f00000000401166cc0a0000010a01000104d20050000be4b2000102"},
      {"tcp", PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").ttl(7).tcp(1, 2).tcp_flags(tcp_syn).tcp_sequence(9, 10),
       "0200000000020200000000010800450000280000000007069fce0a0000010a01000100010002000000090000000a5002ffff9bca0000"},
      {"icmp", PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").icmp(8, 0, 0x00010002).payload(1),
       "02000000000202000000000108004500001d00000000400166de0a0000010a0100010800f7fc0001000200"},
      {"ipv6 udp", PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").udp(1234, 80).payload(3),
       "02000000000202000000000186dd60000000000b114020010db800000000000000000000000120010db800000000000000000000000204d"
       "20050000b9d40000102"},
      {"icmpv6", PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").ttl(255).icmp6(128, 0, 0x00010002),
       "02000000000202000000000186dd6000000000083aff20010db800000000000000000000000120010db8000000000000000000000002800"
       "0244500010002"},
      {"arp", PacketBuilder().arp_request("10.0.0.1", "10.0.0.2"),
       "ffffffffffff020000000001080600010800060400010200000000010a0000010000000000000a000002"},
      {"vlan", PacketBuilder().vlan(5).ipv4("10.0.0.1", "10.1.0.1").pad_to(40),
       "020000000002020000000001810000050800450000140000000040fd65eb0a0000010a0100010000"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(hex(c.frame.build()), c.wire) << c.what;
  }
}

TEST(PacketBuilder, LengthsFollowThePayload) {
  EXPECT_EQ(PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(1, 2).payload(18).build().size(), 60U);
  EXPECT_EQ(PacketBuilder().ipv6("::2", "::3").tcp(1, 2).payload(Bytes{1, 2}).build().size(), 14U + 40 + 20 + 2);
  EXPECT_EQ(PacketBuilder().arp_reply("10.0.0.1", "10.0.0.2").pad_to(60).build().size(), 60U);
  EXPECT_EQ(PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(1, 2).payload(100).pad_to(60).build().size(), 142U);
  EXPECT_EQ(PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").cut_to(9).build().size(), 9U);
}

TEST(PacketBuilder, Ipv4Fragments) {
  const PacketBuilder datagram = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").id(0x1234).udp(1, 2).payload(24);
  const Bytes first = PacketBuilder(datagram).fragment(0, true).build();
  EXPECT_EQ(be16(header_at<Ipv4Header>(first.data(), 14).fragment), ipv4_more_fragments);
  EXPECT_EQ(be16(header_at<Ipv4Header>(first.data(), 14).id), 0x1234);
  EXPECT_EQ(first.size(), 14U + 20 + 8 + 24);
  const Bytes last = PacketBuilder(datagram).fragment(32, false).build();
  EXPECT_EQ(be16(header_at<Ipv4Header>(last.data(), 14).fragment), 4);
  EXPECT_EQ(header_at<Ipv4Header>(last.data(), 14).protocol, protocol_udp);
  EXPECT_EQ(hex(Bytes(last.begin() + 34, last.end())), "000102030405060708090a0b0c0d0e0f1011121314151617");
  const Bytes whole = PacketBuilder(datagram).dont_fragment().build();
  EXPECT_EQ(be16(header_at<Ipv4Header>(whole.data(), 14).fragment), ipv4_dont_fragment);
}

TEST(PacketBuilder, Ipv6ExtensionsChainInTheOrderGiven) {
  const Bytes frame = PacketBuilder()
                          .ipv6("2001:db8::1", "2001:db8::2")
                          .extension(protocol_hop_by_hop, {5, 2, 0, 0})
                          .extension(protocol_destination_options, Bytes(7))
                          .fragment(0, true)
                          .id(0xabcd)
                          .udp(1, 2)
                          .build();
  EXPECT_EQ(header_at<Ipv6Header>(frame.data(), 14).next_header, protocol_hop_by_hop);
  EXPECT_EQ(be16(header_at<Ipv6Header>(frame.data(), 14).payload_length), 8 + 16 + 8 + 8);
  EXPECT_EQ(hex(Bytes(frame.begin() + 54, frame.begin() + 86)),
            "3c00050200000000"  // hop-by-hop: next is destination options, 8 bytes
            "2c01000000000000"
            "0000000000000000"    // destination options: next is fragment, 16 bytes
            "110000010000abcd");  // fragment: next is UDP, offset 0, more
}

TEST(PacketBuilder, OverridesGoIntoTheHeaderAsGiven) {
  const Bytes four = PacketBuilder()
                         .ipv4("10.0.0.1", "10.1.0.1")
                         .udp(1, 2)
                         .ip_version(5)
                         .ihl(3)
                         .ip_length(0x1234)
                         .ip_checksum(0x5678)
                         .udp_length(0x9abc)
                         .transport_checksum(0xdef0)
                         .build();
  EXPECT_EQ(hex(Bytes(four.begin() + 14, four.end())),
            "53001234000000004011"
            "5678"
            "0a0000010a010001"
            "00010002"
            "9abc"
            "def0");
  const Bytes six = PacketBuilder().ipv6("::2", "::3").ip_version(7).ip_length(9).tos(0xab).ethertype(0x0800).build();
  EXPECT_EQ(hex(Bytes(six.begin() + 12, six.begin() + 20)), "08007ab000000009");
}

TEST(PacketBuilder, ChecksumCoversTheOtherOverrides) {
  const Bytes frame = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").ip_length(9).ip_version(7).build();
  EXPECT_TRUE(ipv4_checksum_ok(frame.data() + 14));
}

TEST(PacketBuilder, MayBeBuiltAgain) {
  PacketBuilder builder = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(1, 2).payload(5);
  const Bytes first = builder.build();
  EXPECT_EQ(builder.build(), first);
  EXPECT_NE(builder.ttl(1).build(), first);
  EXPECT_EQ(builder.ttl(64).build(), first);
}

TEST(PacketBuilder, ThrowsOnAnAddressThatDoesNotParse) {
  EXPECT_THROW(PacketBuilder().ipv4("10.0.0.300", "10.0.0.1"), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv4("10.0.0.1", "2001:db8::1"), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv6("2001:db8::1", "10.0.0.1"), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().arp_request("::1", "10.0.0.1"), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().eth("02:00:00:00:00:01", "here"), std::invalid_argument);
}

}  // namespace
}  // namespace sluice::packet
