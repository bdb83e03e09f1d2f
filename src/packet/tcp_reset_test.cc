#include "packet/tcp_reset.h"

#include <gtest/gtest.h>

#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

constexpr std::uint32_t l3 = sizeof(EthernetHeader);

// The RST that answers; empty: none, and the frame is as it was.
Bytes reset_for(Bytes frame, ResetTo to = ResetTo::sender) {
  const Bytes before = frame;
  const std::uint32_t length = make_tcp_reset(frame.data(), static_cast<std::uint32_t>(frame.size()), to);
  if (length == 0) {
    EXPECT_EQ(frame, before);
  }
  frame.resize(length);
  return frame;
}

PacketBuilder v4() {
  return PacketBuilder().ipv4("192.0.2.1", "198.51.100.7").tcp(4000, 80);
}

TEST(TcpReset, AnswersAnAcknowledgingSegmentAtWhatItAcknowledges) {
  const Bytes frame = v4().tcp_flags(tcp_ack | tcp_psh).tcp_sequence(1000, 77777).payload(30).build();
  const Bytes reset = reset_for(frame);
  Bytes expected = PacketBuilder()
                       .ipv4("198.51.100.7", "192.0.2.1")
                       .tcp(80, 4000)
                       .tcp_flags(tcp_rst)
                       .tcp_sequence(77777, 0)
                       .ttl(64)
                       .dont_fragment()
                       .build();
  ASSERT_EQ(reset.size(), expected.size());
  // Link addresses are those of the frame, the other way round; there is no window.
  std::copy_n(frame.begin() + 6, 6, expected.begin());
  std::copy_n(frame.begin(), 6, expected.begin() + 6);
  const auto& tcp = header_at<TcpHeader>(reset.data(), l3 + sizeof(Ipv4Header));
  EXPECT_EQ(be32(tcp.sequence), 77777U);
  EXPECT_EQ(tcp.flags, tcp_rst);
  EXPECT_EQ(be16(tcp.source_port), 80);
  EXPECT_EQ(be16(tcp.destination_port), 4000);
  EXPECT_TRUE(std::equal(reset.begin(), reset.begin() + l3 + 4, expected.begin()));
  EXPECT_TRUE(std::equal(reset.begin() + l3 + 12, reset.begin() + l3 + 20, expected.begin() + l3 + 12)) << "addresses";
}

TEST(TcpReset, AnswersASynByAcknowledgingIt) {
  const Bytes reset = reset_for(v4().tcp_flags(tcp_syn).tcp_sequence(1000, 0).build());
  const auto& tcp = header_at<TcpHeader>(reset.data(), l3 + sizeof(Ipv4Header));
  EXPECT_EQ(tcp.flags, tcp_rst | tcp_ack);
  EXPECT_EQ(be32(tcp.sequence), 0U);
  EXPECT_EQ(be32(tcp.acknowledgment), 1001U);
}

TEST(TcpReset, AnswersOverIpv6WithARightChecksum) {
  const Bytes reset = reset_for(PacketBuilder()
                                    .ipv6("2001:db8::1", "2001:db8::2")
                                    .tcp(4000, 80)
                                    .tcp_flags(tcp_ack)
                                    .tcp_sequence(5, 9)
                                    .payload(8)
                                    .build());
  ASSERT_EQ(reset.size(), l3 + 40 + 20);
  const Bytes expected =
      PacketBuilder().ipv6("2001:db8::2", "2001:db8::1").tcp(80, 4000).tcp_flags(tcp_rst).tcp_sequence(9, 0).build();
  EXPECT_TRUE(std::equal(reset.begin() + l3 + 8, reset.begin() + l3 + 40, expected.begin() + l3 + 8));
  const auto& ip = header_at<Ipv6Header>(reset.data(), l3);
  Bytes segment(reset.begin() + l3 + 40, reset.end());
  EXPECT_EQ(transport_checksum(ip, protocol_tcp, segment.data(), segment.size()), 0);
}

TEST(TcpReset, AnswersAReceiverWhereItExpectsTheSegment) {
  const struct {
    std::uint8_t flags, reset_flags;
    std::uint32_t acknowledgment, reset_acknowledgment;
  } cases[] = {{tcp_ack | tcp_psh, tcp_rst | tcp_ack, 77777, 77777},
               {tcp_syn, tcp_rst, 0, 0},
               {tcp_syn | tcp_ack, tcp_rst | tcp_ack, 501, 501},
               {tcp_psh, tcp_rst, 77777, 0}};
  for (const auto& one : cases) {
    const Bytes frame = v4().tcp_flags(one.flags).tcp_sequence(1000, one.acknowledgment).payload(30).build();
    const Bytes reset = reset_for(frame, ResetTo::receiver);
    ASSERT_EQ(reset.size(), l3 + sizeof(Ipv4Header) + sizeof(TcpHeader));
    EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + l3, reset.begin())) << "link addresses";
    EXPECT_TRUE(std::equal(frame.begin() + l3 + 12, frame.begin() + l3 + 24, reset.begin() + l3 + 12))
        << "addresses and ports";
    const auto& ip = header_at<Ipv4Header>(reset.data(), l3);
    const auto& tcp = header_at<TcpHeader>(reset.data(), l3 + sizeof(Ipv4Header));
    EXPECT_EQ(tcp.flags, one.reset_flags);
    EXPECT_EQ(be32(tcp.sequence), 1000U);
    EXPECT_EQ(be32(tcp.acknowledgment), one.reset_acknowledgment);
    EXPECT_EQ(transport_checksum(ip, &tcp, sizeof tcp), 0);
    EXPECT_EQ(internet_checksum(&ip, sizeof ip), 0);
  }
}

TEST(TcpReset, AnswersAReceiverOverIpv6) {
  const Bytes frame = PacketBuilder()
                          .ipv6("2001:db8::1", "2001:db8::2")
                          .tcp(4000, 80)
                          .tcp_flags(tcp_ack)
                          .tcp_sequence(5, 9)
                          .payload(8)
                          .build();
  const Bytes reset = reset_for(frame, ResetTo::receiver);
  ASSERT_EQ(reset.size(), l3 + 40 + 20);
  EXPECT_TRUE(std::equal(frame.begin() + l3 + 8, frame.begin() + l3 + 48, reset.begin() + l3 + 8)) << "to its sequence";
  const auto& ip = header_at<Ipv6Header>(reset.data(), l3);
  const Bytes segment(reset.begin() + l3 + 40, reset.end());
  EXPECT_EQ(transport_checksum(ip, protocol_tcp, segment.data(), segment.size()), 0);
}

TEST(TcpReset, AnswersBehindAVlanTagWhichStays) {
  Bytes frame = v4().tcp_flags(tcp_ack).tcp_sequence(1, 2).build();
  const Bytes tag{0x81, 0x00, 0x00, 0x07};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  const Bytes reset = reset_for(frame);
  ASSERT_FALSE(reset.empty());
  EXPECT_TRUE(std::equal(tag.begin(), tag.end(), reset.begin() + 12));
}

TEST(TcpReset, AnswersBehindExtensionHeadersWithoutThem) {
  const Bytes frame = PacketBuilder()
                          .ipv6("2001:db8::1", "2001:db8::2")
                          .extension(protocol_destination_options, {1, 4, 0, 0, 0, 0})
                          .tcp(4000, 80)
                          .tcp_flags(tcp_ack)
                          .tcp_sequence(5, 9)
                          .payload(8)
                          .build();
  for (const ResetTo to : {ResetTo::sender, ResetTo::receiver}) {
    const Bytes reset = reset_for(frame, to);
    ASSERT_EQ(reset.size(), l3 + 40 + 20);
    const auto& ip = header_at<Ipv6Header>(reset.data(), l3);
    const Bytes segment(reset.begin() + l3 + 40, reset.end());
    EXPECT_EQ(ip.next_header, protocol_tcp);
    EXPECT_EQ(be16(ip.payload_length), 20);
    EXPECT_EQ(transport_checksum(ip, protocol_tcp, segment.data(), segment.size()), 0);
  }
}

TEST(TcpReset, DoesNotAnswerWhatIsNoWholeSegmentOrAReset) {
  EXPECT_TRUE(reset_for(v4().tcp_flags(tcp_rst).build()).empty());
  EXPECT_TRUE(reset_for(PacketBuilder().ipv4("192.0.2.1", "198.51.100.7").udp(1, 2).payload(30).build()).empty());
  const Bytes whole = v4().tcp_flags(tcp_ack).payload(30).build();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(reset_for(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))).empty()) << size;
  }
  EXPECT_TRUE(
      reset_for(
          PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").extension(protocol_routing, {0, 0}).tcp(4000, 80).build())
          .empty());
  Bytes fragment = whole;
  fragment[l3 + 6] |= 0x20;
  EXPECT_TRUE(reset_for(fragment).empty());
}

}  // namespace
}  // namespace sluice::packet
