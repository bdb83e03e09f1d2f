#include "ipsec/too_big.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/icmp_error.h"

namespace sluice::ipsec {
namespace {

using packet::Bytes;
using packet::IpAddress;
using packet::PacketBuilder;

constexpr std::uint32_t ethernet = 14;

// ESP's or AH's first bytes: SPI 0x11223344, number 0x55667788.
Bytes ids(std::uint32_t in_front = 0) {
  Bytes bytes(in_front, 0);
  for (std::uint8_t n = 1; n <= 8; ++n) bytes.push_back(static_cast<std::uint8_t>(n * 0x11));
  bytes.resize(1000, 0xee);
  return bytes;
}

PacketBuilder packet_to(int family) {
  PacketBuilder builder;
  family == 4 ? builder.ipv4("192.0.2.1", "192.0.2.2").dont_fragment() : builder.ipv6("2001:db8::1", "2001:db8::2");
  return builder;
}

// What a router says of the frame.
Bytes error_about(Bytes frame, std::uint32_t mtu, std::uint32_t most_quoted = 0xffffffff) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  frame.resize(frame.size() + 200);
  const IpAddress router = *IpAddress::parse(frame[12] == 0x08 ? "198.51.100.1" : "2001:db8:5::1");
  const std::uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
  const std::uint32_t left = packet::make_icmp_error(frame.data(), length, static_cast<std::uint32_t>(frame.size()),
                                                     {.kind = packet::IcmpErrorKind::too_big,
                                                      .mtu = mtu,
                                                      .source = router,
                                                      .own_mac = mac,
                                                      .most_quoted = most_quoted});
  EXPECT_NE(left, 0U);
  frame.resize(left);
  return frame;
}

std::optional<TooBig> read(const Bytes& frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  return is_too_big(frame.data(), length) ? read_too_big(frame.data(), length) : std::nullopt;
}

TEST(TooBig, SaysOfWhichSaAndHowMuch) {
  struct Case {
    const char* what;
    std::uint8_t protocol;
    Bytes content;
    Protocol expected;
    bool in_udp;
  };
  const Case cases[] = {{"ESP", packet::protocol_esp, ids(), Protocol::esp, false},
                        {"AH", packet::protocol_ah, ids(4), Protocol::ah, false},
                        {"ESP in UDP", 0, ids(), Protocol::esp, true}};
  for (const int family : {4, 6}) {
    for (const Case& one : cases) {
      PacketBuilder builder = packet_to(family);
      if (one.in_udp) {
        builder.udp(4500, 4500);
      } else {
        builder.protocol(one.protocol);
      }
      const Bytes frame = builder.payload(one.content).build();
      const auto error = read(error_about(frame, 1300));
      ASSERT_TRUE(error) << one.what << family;
      EXPECT_EQ(error->family, family);
      EXPECT_EQ(error->protocol, one.expected);
      EXPECT_EQ(error->in_udp, one.in_udp);
      EXPECT_EQ(error->spi, 0x11223344U);
      EXPECT_EQ(error->sequence, 0x55667788U);
      EXPECT_EQ(error->mtu, 1300U);
      EXPECT_EQ(error->length, frame.size() - ethernet);
      EXPECT_EQ(IpAddress::from_bytes(family, error->source.data()).str(), family == 4 ? "192.0.2.1" : "2001:db8::1");
      EXPECT_EQ(IpAddress::from_bytes(family, error->destination.data()).str(),
                family == 4 ? "192.0.2.2" : "2001:db8::2");
    }
  }
}

TEST(TooBig, IsNothingElse) {
  for (const int family : {4, 6}) {
    const Bytes esp = packet_to(family).protocol(packet::protocol_esp).payload(ids()).build();
    const Bytes error = error_about(esp, 1300);
    ASSERT_TRUE(read(error));
    EXPECT_FALSE(read(esp));
    Bytes wrong = error;
    wrong.back() ^= 1;
    EXPECT_FALSE(read(wrong)) << "its checksum";
    EXPECT_FALSE(read(error_about(packet_to(family).tcp(1000, 80).payload(100).build(), 1300))) << "TCP";
    const std::uint32_t header = family == 4 ? 20 : 40;
    EXPECT_FALSE(
        read(error_about(packet_to(family).protocol(packet::protocol_ah).payload(ids(4)).build(), 1300, header + 8)))
        << "without the sequence number";
    // Of another kind, to another host: the checksum is put right each time.
    const auto changed = [&](std::size_t at, std::uint8_t value) {
      Bytes frame = error;
      frame[at] = value;
      std::uint8_t* const icmp = frame.data() + ethernet + header;
      icmp[2] = icmp[3] = 0;
      const std::size_t bytes = frame.size() - ethernet - header;
      const std::uint16_t sum =
          family == 4 ? packet::internet_checksum(icmp, bytes)
                      : packet::transport_checksum(packet::header_at<packet::Ipv6Header>(frame.data(), ethernet),
                                                   packet::protocol_icmpv6, icmp, bytes);
      std::memcpy(icmp + 2, &sum, sizeof sum);
      return frame;
    };
    const std::size_t icmp = ethernet + header, quoted = icmp + 8;
    EXPECT_TRUE(read(changed(icmp + 7, 0x20))) << "another MTU";
    EXPECT_FALSE(read(changed(icmp, 1)));
    EXPECT_FALSE(read(changed(quoted, family == 4 ? 0x65 : 0x45))) << "the other family";
    EXPECT_FALSE(read(changed(quoted + (family == 4 ? 15 : 23), 7))) << "of another sender";
    if (family == 4) EXPECT_FALSE(read(changed(quoted + 7, 1))) << "a later fragment";
  }
}

TEST(TooBig, ReadsNothingBehindTheFrame) {
  for (const int family : {4, 6}) {
    const Bytes error = error_about(packet_to(family).protocol(packet::protocol_esp).payload(ids()).build(), 1300);
    for (std::size_t length = 0; length < error.size(); ++length) {
      const Bytes cut(error.begin(), error.begin() + static_cast<std::ptrdiff_t>(length));  // for the sanitizer
      EXPECT_FALSE(read(cut)) << length;
    }
  }
}

}  // namespace
}  // namespace sluice::ipsec
