#include "packet/merger.h"

#include <gtest/gtest.h>

#include <functional>

#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

using enum Merger::Checksum;

constexpr std::uint32_t first_sequence = 0xffffff00;  // it wraps

PacketBuilder segment(unsigned family, std::uint32_t number, std::size_t payload = 1448) {
  PacketBuilder builder;
  family == 4 ? builder.ipv4("10.0.0.1", "10.1.0.1").id((0xfffe + number) & 0xffff).dont_fragment()
              : builder.ipv6("2001:db8::1", "2001:db8:1::1");
  builder.tcp(1234, 80).tcp_sequence(first_sequence + number * 1448, 77).payload(payload);
  return builder;
}

// Merged and cut up again it is what it was.
TEST(Merger, WhatACardMakesOfThePacketAreTheFrames) {
  for (const unsigned family : {4U, 6U}) {
    for (const unsigned count : {2U, 3U, 44U}) {
      std::vector<Bytes> frames;
      for (unsigned i = 0; i < count; ++i) frames.push_back(segment(family, i).build());
      frames.back() = segment(family, count - 1, 99).tcp_flags(tcp_ack | tcp_psh).build();
      Merger merger;
      ASSERT_TRUE(merger.begin(frames[0].data(), frames[0].size(), to_verify));
      for (unsigned i = 1; i < count; ++i) ASSERT_TRUE(merger.add(frames[i].data(), frames[i].size(), to_verify)) << i;
      Bytes whole(merger.header_bytes());
      merger.write_headers(whole.data());
      for (const Bytes& frame : frames) {
        whole.insert(whole.end(), frame.begin() + static_cast<std::ptrdiff_t>(merger.header_bytes()), frame.end());
      }
      Segmenter segments;
      ASSERT_TRUE(
          segments.begin(whole.data(), whole.size(), Segmentation::tcp, merger.payload_bytes(), merger.transport()));
      for (const Bytes& frame : frames) {
        Bytes piece(segments.next_length());
        segments.write_next(piece.data());
        EXPECT_EQ(piece, frame);
      }
      EXPECT_TRUE(segments.done());
    }
  }
}

TEST(Merger, NoMoreThanAnIpPacketHolds) {
  Merger merger;
  const Bytes first = segment(4, 0).build();
  ASSERT_TRUE(merger.begin(first.data(), first.size(), to_verify));
  unsigned taken = 1;
  for (; taken < 64; ++taken) {
    const Bytes next = segment(4, taken).build();
    if (!merger.add(next.data(), next.size(), to_verify)) break;
  }
  EXPECT_EQ(taken, 45U);
}

TEST(Merger, WhatDoesNotFollowIsNotTaken) {
  using Change = std::function<void(PacketBuilder&)>;
  const std::pair<const char*, Change> changes[] = {
      {"another sequence", [](auto& b) { b.tcp_sequence(first_sequence + 1, 77); }},
      {"another acknowledgement", [](auto& b) { b.tcp_sequence(first_sequence + 1448, 78); }},
      {"FIN", [](auto& b) { b.tcp_flags(tcp_ack | tcp_fin); }},
      {"CWR", [](auto& b) { b.tcp_flags(tcp_ack | 0x80); }},
      {"another TTL", [](auto& b) { b.ttl(63); }},
      {"ECN", [](auto& b) { b.tos(3); }},
      {"another id", [](auto& b) { b.id(7); }},
      {"longer", [](auto& b) { b.payload(1449); }},
      {"no payload", [](auto& b) { b.payload(std::size_t{0}); }},
      {"padding", [](auto& b) { b.payload(1).pad_to(60); }},
      {"a wrong checksum", [](auto& b) { b.transport_checksum(0x1234); }},
      {"a wrong IP checksum", [](auto& b) { b.ip_checksum(0x1234); }},
      {"a fragment", [](auto& b) { b.fragment(0, true); }},
      {"options",
       [](auto& b) {
         b.options({1, 1, 1, 1});
       }},
      {"a tag", [](auto& b) { b.vlan(7); }},
      {"another host", [](auto& b) { b.eth("02:00:00:00:00:09", "02:00:00:00:00:02"); }},
  };
  const Bytes first = segment(4, 0).build();
  for (const auto& [what, change] : changes) {
    PacketBuilder builder = segment(4, 1);
    change(builder);
    const Bytes next = builder.build();
    Merger merger;
    ASSERT_TRUE(merger.begin(first.data(), first.size(), to_verify));
    EXPECT_FALSE(merger.add(next.data(), next.size(), to_verify)) << what;
  }
}

// A frame that the caller knows to be right is taken without a look at its bytes: here they are wrong, and it is taken.
TEST(Merger, AWrongChecksumIsSeenWhereItIsNotKnownToBeRight) {
  for (const unsigned family : {4U, 6U}) {
    const Bytes right = segment(family, 0).build();
    const Bytes wrong_first = segment(family, 0).transport_checksum(0x1234).build();
    const Bytes wrong_next = segment(family, 1).transport_checksum(0x1234).build();
    Merger merger;
    EXPECT_FALSE(merger.begin(wrong_first.data(), wrong_first.size(), to_verify));
    EXPECT_TRUE(merger.begin(wrong_first.data(), wrong_first.size(), known_right));
    ASSERT_TRUE(merger.begin(right.data(), right.size(), to_verify));
    EXPECT_FALSE(merger.add(wrong_next.data(), wrong_next.size(), to_verify));
    EXPECT_TRUE(merger.add(wrong_next.data(), wrong_next.size(), known_right));
  }
}

// What is known is the transport's; the IPv4 header has its own.
TEST(Merger, AWrongIpChecksumIsSeenAlways) {
  const Bytes wrong = segment(4, 0).ip_checksum(0x1234).build();
  Merger merger;
  EXPECT_FALSE(merger.begin(wrong.data(), wrong.size(), known_right));
}

TEST(Merger, NothingFollowsAShorterFrameOrAPush) {
  for (const bool push : {true, false}) {
    const Bytes first = segment(4, 0).build();
    const Bytes second = segment(4, 1, push ? 1448 : 1440).tcp_flags(push ? tcp_ack | tcp_psh : tcp_ack).build();
    const Bytes third = segment(4, 2).tcp_sequence(first_sequence + 1448 + (push ? 1448 : 1440), 77).build();
    Merger merger;
    ASSERT_TRUE(merger.begin(first.data(), first.size(), to_verify));
    ASSERT_TRUE(merger.add(second.data(), second.size(), to_verify));
    EXPECT_FALSE(merger.add(third.data(), third.size(), to_verify));
  }
  Merger merger;
  const Bytes push = segment(4, 0).tcp_flags(tcp_ack | tcp_psh).build();
  EXPECT_FALSE(merger.begin(push.data(), push.size(), to_verify));
}

}  // namespace
}  // namespace sluice::packet
