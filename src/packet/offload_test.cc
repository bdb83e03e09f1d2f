#include "packet/offload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

constexpr std::size_t tcp_checksum = 16, udp_checksum = 6;

PacketBuilder frame_of(unsigned family, bool tcp, std::size_t payload) {
  PacketBuilder builder;
  family == 4 ? builder.ipv4("10.0.0.1", "10.1.0.1") : builder.ipv6("2001:db8::1", "2001:db8:1::1");
  tcp ? builder.tcp(1234, 80) : builder.udp(1234, 80);
  return builder.payload(payload);
}

// As a kernel that leaves the checksum to its card hands it over.
Bytes unfinished(const Bytes& whole, std::size_t offset) {
  Bytes frame = whole;
  const auto places = find_headers(frame.data(), frame.size());
  const std::size_t bytes = places->end - places->transport;
  std::uint64_t sum = be16(places->protocol);
  if (places->family == 4) {
    const auto& ip = header_at<Ipv4Header>(frame.data(), places->network);
    sum += std::uint64_t{ip.source} + ip.destination + be16(static_cast<std::uint16_t>(bytes));
  } else {
    sum = partial_sum(header_at<Ipv6Header>(frame.data(), places->network).source, 32,
                      sum + be32(static_cast<std::uint32_t>(bytes)));
  }
  const std::uint16_t mark = fold_sum(sum);
  std::memcpy(frame.data() + places->transport + offset, &mark, sizeof mark);
  return frame;
}

TEST(Offload, AChecksumIsFinishedWhereTheDriverSays) {
  for (const unsigned family : {4U, 6U}) {
    for (const bool tcp : {true, false}) {
      for (const std::size_t payload : {0, 1, 17, 1400}) {
        const std::size_t offset = tcp ? tcp_checksum : udp_checksum;
        const Bytes whole = frame_of(family, tcp, payload).build();
        Bytes frame = unfinished(whole, offset);
        const std::size_t start = find_headers(frame.data(), frame.size())->transport;
        ASSERT_TRUE(finish_checksum(frame.data(), frame.size(), start, offset));
        EXPECT_EQ(frame, whole) << family << tcp << payload;
        Bytes marked = unfinished(whole, offset);
        EXPECT_TRUE(finish_marked_checksum(marked.data(), marked.size()));
        EXPECT_EQ(marked, whole) << family << tcp << payload;
      }
    }
  }
}

TEST(Offload, WhatLiesOutsideTheFrameIsRefused) {
  Bytes frame = frame_of(4, true, 10).build();
  const Bytes before = frame;
  EXPECT_FALSE(finish_checksum(frame.data(), frame.size(), frame.size() - 1, 0));
  EXPECT_FALSE(finish_checksum(frame.data(), frame.size(), frame.size() + 1, 0));
  EXPECT_FALSE(finish_checksum(frame.data(), frame.size(), 34, 0xffff));
  EXPECT_EQ(frame, before);
}

// A wrong checksum that is no mark is a damaged packet's: whom it is for has to see it.
TEST(Offload, RightAndWrongChecksumsStayAsTheyAre) {
  for (const bool tcp : {true, false}) {
    for (const int checksum : {-1, 0, 0x1234}) {
      PacketBuilder builder = frame_of(4, tcp, 100);
      if (checksum >= 0) builder.transport_checksum(static_cast<std::uint16_t>(checksum));
      Bytes frame = builder.build();
      const Bytes before = frame;
      EXPECT_FALSE(finish_marked_checksum(frame.data(), frame.size()));
      EXPECT_EQ(frame, before);
    }
  }
}

TEST(Offload, AMarkIsFoundBehindTagsOptionsExtensionsAndBeforePadding) {
  PacketBuilder builders[] = {frame_of(4, true, 5).vlan(7).vlan(9), frame_of(4, false, 5).options({1, 1, 1, 1}),
                              frame_of(6, true, 5).extension(protocol_destination_options, {1, 4, 0, 0, 0, 0}),
                              frame_of(4, false, 3).pad_to(60)};
  for (PacketBuilder& builder : builders) {
    const Bytes whole = builder.build();
    const auto places = find_headers(whole.data(), whole.size());
    ASSERT_TRUE(places);
    Bytes frame = unfinished(whole, places->protocol == protocol_tcp ? tcp_checksum : udp_checksum);
    EXPECT_TRUE(finish_marked_checksum(frame.data(), frame.size()));
    EXPECT_EQ(frame, whole);
  }
}

TEST(Offload, FragmentsAndCutFramesHaveNoMark) {
  Bytes fragment = frame_of(4, false, 64).fragment(0, true).build();
  EXPECT_FALSE(finish_marked_checksum(fragment.data(), fragment.size()));
  const Bytes whole = unfinished(frame_of(6, true, 20).build(), tcp_checksum);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(finish_marked_checksum(cut.data(), cut.size())) << length;
  }
}

// The value is from a program of its own, bit by bit.
TEST(Offload, SctpGetsItsCrc) {
  Bytes chunk(20, 0);
  chunk[0] = 0x12;
  chunk[3] = 0x50;
  Bytes frame = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").protocol(protocol_sctp).payload(chunk).build();
  Bytes finished = frame;
  EXPECT_TRUE(finish_marked_checksum(frame.data(), frame.size()));
  EXPECT_TRUE(finish_checksum(finished.data(), finished.size(), 34, 8));
  EXPECT_EQ(frame, finished);
  EXPECT_FALSE(finish_marked_checksum(frame.data(), frame.size()));
  const Bytes crc(frame.begin() + 34 + 8, frame.begin() + 34 + 12);
  EXPECT_EQ(crc, (Bytes{0x45, 0x09, 0x2c, 0xfa}));
}

class Cut : public testing::TestWithParam<std::tuple<unsigned, bool, std::size_t>> {};

TEST_P(Cut, EverySegmentIsWhatTheSenderWouldHaveSent) {
  const unsigned family = std::get<0>(GetParam());
  const bool tcp = std::get<1>(GetParam());
  const std::size_t payload = std::get<2>(GetParam());
  constexpr std::size_t piece = 1400;
  constexpr std::uint8_t all_flags = tcp_ack | tcp_psh | tcp_fin | 0x80;
  const std::size_t offset = tcp ? tcp_checksum : udp_checksum;
  Bytes bytes(payload);
  std::mt19937 random(7);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const auto build = [&](const Bytes& part, std::uint32_t sequence, std::uint32_t id, std::uint8_t flags) {
    PacketBuilder builder = frame_of(family, tcp, 0).payload(part);
    if (family == 4) builder.id(id).dont_fragment();
    if (tcp) builder.tcp_sequence(sequence, 77).tcp_flags(flags);
    return builder.build();
  };
  const Bytes merged = unfinished(build(bytes, 0xfffffff0, 0xffff, all_flags), offset);
  Segmenter segments;
  const std::size_t start = find_headers(merged.data(), merged.size())->transport;
  ASSERT_TRUE(segments.begin(merged.data(), merged.size(), tcp ? Segmentation::tcp : Segmentation::udp, piece, start));
  std::size_t at = 0;
  for (std::uint32_t i = 0; at < payload; ++i) {
    ASSERT_FALSE(segments.done());
    const std::size_t next = std::min(piece, payload - at);
    std::uint8_t flags = tcp_ack;
    if (i == 0) flags |= 0x80;
    if (at + next == payload) flags |= tcp_psh | tcp_fin;
    const Bytes part(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + next));
    const Bytes expected = build(part, static_cast<std::uint32_t>(0xfffffff0 + at), (0xffff + i) & 0xffff, flags);
    Bytes segment(segments.next_length());
    segments.write_next(segment.data());
    ASSERT_EQ(segment, expected) << i;
    at += next;
  }
  EXPECT_TRUE(segments.done());
}

INSTANTIATE_TEST_SUITE_P(Offload, Cut,
                         testing::Combine(testing::Values(4U, 6U), testing::Bool(),
                                          testing::Values(std::size_t{1}, std::size_t{1400}, std::size_t{1401},
                                                          std::size_t{14001}, std::size_t{60000})));

TEST(Offload, WhatIsNoSuchPacketOrInATunnelIsNotCutUp) {
  Segmenter segments;
  const Bytes udp = frame_of(4, false, 3000).build();
  EXPECT_FALSE(segments.begin(udp.data(), udp.size(), Segmentation::tcp, 1400, 34));
  EXPECT_TRUE(segments.done());
  EXPECT_FALSE(segments.begin(udp.data(), udp.size(), Segmentation::udp, 1400, 84)) << "a tunnel's inner packet";
  EXPECT_FALSE(segments.begin(udp.data(), udp.size(), Segmentation::udp, 0, 34));
  const Bytes tcp = frame_of(6, true, 3000).build();
  for (std::size_t length = 0; length < 14 + 40 + 20; ++length) {
    EXPECT_FALSE(segments.begin(tcp.data(), length, Segmentation::tcp, 1400, 54)) << length;
  }
  const Bytes bare = frame_of(4, true, 0).build();
  EXPECT_FALSE(segments.begin(bare.data(), bare.size(), Segmentation::tcp, 1400, 34)) << "no payload";
}

}  // namespace
}  // namespace sluice::packet
