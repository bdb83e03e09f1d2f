// Known answers were made with a separate program from the RFCs' figures; then frames that no error may answer.
#include "packet/icmp_error.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

constexpr MacAddress own_mac{{0x02, 0, 0, 0, 0, 0x0b}};
constexpr std::uint32_t plenty = 2048;

PacketBuilder v4(const char* source = "10.1.0.9", const char* destination = "203.0.113.7") {
  return PacketBuilder().eth("02:00:00:00:00:0a", "02:00:00:00:00:0b").ipv4(source, destination).udp(1000, 33434);
}
PacketBuilder v6(const char* source = "2001:db8:1::9", const char* destination = "2001:db8:77::1") {
  return PacketBuilder().eth("02:00:00:00:00:0a", "02:00:00:00:00:0b").ipv6(source, destination).udp(1000, 33434);
}

bool may_answer(const Bytes& frame) {
  return may_answer_with_icmp_error(frame.data(), static_cast<std::uint32_t>(frame.size()));
}

Bytes error_for(Bytes frame, IcmpErrorKind kind, std::uint32_t mtu = 0, std::uint32_t capacity = plenty) {
  const bool is_v6 = frame[12] == 0x86;
  const IpAddress source = *IpAddress::parse(is_v6 ? "2001:db8:1::1" : "10.1.0.1");
  const auto length = static_cast<std::uint32_t>(frame.size());
  frame.resize(std::max<std::size_t>(capacity, frame.size()), 0xee);  // what lies behind a frame in its buffer
  frame.resize(make_icmp_error(frame.data(), length, capacity, {kind, mtu, source, own_mac.bytes.data()}));
  return frame;
}

std::string hex(const Bytes& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(IcmpError, KnownAnswers) {
  // Padded to Ethernet's minimum: the padding is not quoted.
  EXPECT_EQ(hex(error_for(v4().ttl(1).payload(4).pad_to(60).build(), IcmpErrorKind::time_exceeded)),
            "02000000000a02000000000b080045c0003c00004000400125f60a0100010a01"
            "00090b003b2f000000004500002000000000011173bc0a010009cb00710703e8"
            "829a000c313e00010203");
  EXPECT_EQ(hex(error_for(v4().ttl(9).dont_fragment().payload(4).build(), IcmpErrorKind::too_big, 1400)),
            "02000000000a02000000000b080045c0003c00004000400125f60a0100010a01"
            "000903043db300000578450000200000400009112bbc0a010009cb00710703e8"
            "829a000c313e00010203");
  EXPECT_EQ(hex(error_for(v6().ttl(1).payload(4).build(), IcmpErrorKind::time_exceeded)),
            "02000000000a02000000000b86dd60000000003c3a4020010db8000100000000"
            "00000000000120010db80001000000000000000000090300301b000000006000"
            "0000000c110120010db800010000000000000000000920010db8007700000000"
            "00000000000103e8829a000c1b5c00010203");
  EXPECT_EQ(hex(error_for(v6().ttl(9).payload(4).build(), IcmpErrorKind::too_big, 1400)),
            "02000000000a02000000000b86dd60000000003c3a4020010db8000100000000"
            "00000000000120010db800010000000000000000000902002b9b000005786000"
            "0000000c110920010db800010000000000000000000920010db8007700000000"
            "00000000000103e8829a000c1b5c00010203");
}

TEST(IcmpError, AnMtuThatIpv4CannotSayIsTheLargest) {
  const Bytes error = error_for(v4().dont_fragment().payload(4).build(), IcmpErrorKind::too_big, 70000);
  EXPECT_EQ(hex({error.begin() + 38, error.begin() + 42}), "0000ffff");
}

TEST(IcmpError, QuotesAsMuchAsFits) {
  for (const auto& [frame, headers, most] : {std::tuple{v4().dont_fragment().payload(1472).build(), 28U, 576U},
                                             std::tuple{v6().payload(1452).build(), 48U, 1280U}}) {
    for (const std::uint32_t capacity : {plenty, 14 + most, 14 + most - 1, 200U, least_icmp_error_capacity}) {
      SCOPED_TRACE(std::to_string(headers) + " " + std::to_string(capacity));
      const Bytes error = error_for(frame, IcmpErrorKind::too_big, 1400, capacity);
      ASSERT_EQ(error.size(), std::min(capacity, 14 + most));
      EXPECT_TRUE(std::equal(error.begin() + 14 + headers, error.end(), frame.begin() + 14));
      const std::uint8_t* const packet = error.data() + 14;
      if (headers == 28) {
        EXPECT_EQ(internet_checksum(packet, 20), 0);
        EXPECT_EQ(internet_checksum(packet + 20, error.size() - 34), 0);
      } else {
        const auto& ip = header_at<Ipv6Header>(packet, 0);
        Bytes segment(error.begin() + 54, error.end());
        const std::uint16_t sent = header_at<Icmpv6Header>(segment.data(), 0).checksum;
        segment[2] = segment[3] = 0;
        EXPECT_EQ(transport_checksum(ip, protocol_icmpv6, segment.data(), segment.size()), sent);
      }
    }
    EXPECT_TRUE(error_for(frame, IcmpErrorKind::too_big, 1400, least_icmp_error_capacity - 1).empty());
  }
}

TEST(IcmpError, QuotesNoMoreThanItMay) {
  const IpAddress source = *IpAddress::parse("10.1.0.1");
  const Bytes whole = v4().payload(100).build();
  Bytes frame = whole;
  frame.resize(plenty);
  frame.resize(make_icmp_error(
      frame.data(), static_cast<std::uint32_t>(whole.size()), plenty,
      {.kind = IcmpErrorKind::prohibited, .source = source, .own_mac = own_mac.bytes.data(), .most_quoted = 28}));
  ASSERT_EQ(frame.size(), 14U + 28 + 28);
  EXPECT_TRUE(std::equal(frame.begin() + 42, frame.end(), whole.begin() + 14));
  EXPECT_EQ(internet_checksum(frame.data() + 14, 20), 0);
  EXPECT_EQ(internet_checksum(frame.data() + 34, frame.size() - 34), 0);
}

TEST(IcmpError, TagsStay) {
  const Bytes plain = error_for(v4().payload(4).build(), IcmpErrorKind::prohibited);
  Bytes tagged = error_for(v4().vlan(7).vlan(8).payload(4).build(), IcmpErrorKind::prohibited);
  const Bytes tags(tagged.begin() + 12, tagged.begin() + 20);
  EXPECT_EQ(tags, (Bytes{0x88, 0xa8, 0, 7, 0x81, 0, 0, 8}));
  tagged.erase(tagged.begin() + 12, tagged.begin() + 20);
  EXPECT_EQ(hex(tagged), hex(plain));
  EXPECT_TRUE(error_for(v4().vlan(7).payload(400).build(), IcmpErrorKind::prohibited, 0, least_icmp_error_capacity + 3)
                  .empty());
}

TEST(IcmpError, AnswersWhatMayBeAnswered) {
  for (const auto& [what, frame] : std::vector<std::pair<const char*, PacketBuilder>>{
           {"UDP", v4()},
           {"TCP", v4().tcp(1, 2)},
           {"echo request", v4().icmp(8, 0)},
           {"echo reply", v4().icmp(0, 0)},
           {"no transport header", PacketBuilder().ipv4("10.0.0.1", "10.1.0.1")},
           {"options", v4().options({7, 4, 5, 0}).icmp(8, 0)},
           {"first fragment", v4().fragment(0, true).payload(64)},
           {"in two VLANs", v4().vlan(7).vlan(8)},
           {"IPv6 UDP", v6()},
           {"IPv6 in a VLAN", v6().vlan(7)},
           {"IPv6 of any length before options", v6().extension(0, {1, 4, 0, 0, 0, 0}).icmp6(128, 0).ip_length(0)},
           {"behind AH",
            PacketBuilder().ipv6("2001:db8::1", "2001:db8:1::1").protocol(51).payload({17, 1, 0, 0, 0, 0, 0, 0, 0, 0,
                                                                                       0,  0, 0, 1, 0, 2, 0, 8, 0, 0})},
           {"IPv6 echo request", v6().icmp6(128, 0)},
           {"IPv6 first fragment", v6().fragment(0, true).payload(64)},
           {"IPv6 echo behind options", v6().extension(60, {1, 4, 0, 0, 0, 0}).icmp6(128, 0)},
       }) {
    EXPECT_TRUE(may_answer(frame.build())) << what;
  }
}

TEST(IcmpError, AnswersNothingElse) {
  std::vector<std::pair<std::string, PacketBuilder>> cases{
      {"ARP", PacketBuilder().arp_reply("10.1.0.9", "10.1.0.1")},
      {"broadcast frame", v4().eth("02:00:00:00:00:0a", "ff:ff:ff:ff:ff:ff")},
      {"multicast frame", v6().eth("02:00:00:00:00:0a", "33:33:00:00:00:01")},
      {"from a group's link address", v4().eth("03:00:00:00:00:0a", "02:00:00:00:00:0b")},
      {"later fragment", v4().fragment(1480, false).payload(64)},
      {"later fragment with more", v4().fragment(8, true).payload(64)},
      {"ICMP without a type", PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").protocol(1)},
      {"IPv6 later fragment", v6().fragment(8, false).payload(64)},
      {"ICMPv6 without a type", PacketBuilder().ipv6("2001:db8::1", "2001:db8:1::1").protocol(58)},
      {"ICMPv6 redirect", v6().icmp6(137, 0)},
      {"ICMPv6 error behind options", v6().extension(60, {1, 4, 0, 0, 0, 0}).icmp6(3, 0)},
      {"ICMPv6 error behind a first fragment header", v6().fragment(0, true).icmp6(1, 0)},
      {"ICMPv6 error behind AH",
       PacketBuilder().ipv6("2001:db8::1", "2001:db8:1::1").protocol(51).payload({58, 1, 0, 0, 0, 0, 0, 0, 0, 0,
                                                                                  0,  0, 1, 0, 0, 0, 0, 0, 0, 0})},
      {"AH cut", PacketBuilder().ipv6("2001:db8::1", "2001:db8:1::1").protocol(51).payload({17, 9, 0, 0, 0, 0, 0, 0})},
      {"ICMP error in a VLAN", v4().vlan(7).icmp(3, 0)},
      {"cut in a tag", v4().vlan(7).cut_to(17)},
      {"cut options", v6().extension(60, {1, 4, 0, 0, 0, 0}).ip_length(4).cut_to(58)},
      {"IPv4 header cut", v4().cut_to(33)},
      {"IPv4 packet cut", v4().payload(50).cut_to(60)},
      {"IPv6 packet cut", v6().payload(50).cut_to(80)},
      {"empty", v4().cut_to(0)},
  };
  for (const std::uint8_t type : {3, 4, 5, 11, 12}) {
    cases.emplace_back("ICMP " + std::to_string(type), v4().icmp(type, 0));
    cases.emplace_back("ICMP behind options " + std::to_string(type), v4().options({7, 4, 5, 0}).icmp(type, 0));
  }
  for (const std::uint8_t type : {1, 2, 3, 4, 127}) {
    cases.emplace_back("ICMPv6 " + std::to_string(type), v6().icmp6(type, 0));
  }
  for (const char* address : {"0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255"}) {
    cases.emplace_back(std::string("from ") + address, v4(address));
    cases.emplace_back(std::string("to ") + address, v4("10.1.0.9", address));
  }
  for (const char* address : {"::", "::1", "ff02::1", "ff0e::1"}) {
    cases.emplace_back(std::string("from ") + address, v6(address));
    cases.emplace_back(std::string("to ") + address, v6("2001:db8:1::9", address));
  }
  for (const auto& [what, frame] : cases) {
    EXPECT_FALSE(may_answer(frame.build())) << what;
  }
}

// Any bytes: nothing behind the frame is read (the sanitizers see it).
TEST(IcmpError, JudgesEveryCutOfAFrame) {
  for (const PacketBuilder& whole : {v4().options({7, 4, 5, 0}).icmp(8, 0), v6().fragment(0, true).icmp6(128, 0)}) {
    const std::size_t length = whole.build().size();
    for (std::size_t cut = 0; cut < length; ++cut) {
      Bytes frame = PacketBuilder(whole).cut_to(cut).build();
      frame.shrink_to_fit();
      EXPECT_FALSE(may_answer(frame)) << cut;
    }
  }
}

}  // namespace
}  // namespace sluice::packet
