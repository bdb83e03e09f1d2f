#include "media/srtp/header.h"

#include <gtest/gtest.h>

#include "crypto/hex.h"
#include "media/srtp/suite.h"

namespace sluice::srtp {
namespace {

using crypto::from_hex;

TEST(RtpHeader, IsReadWithAllChecks) {
  struct Case {
    std::string_view packet;
    Status status;
    unsigned length;
  };
  for (const Case& c : {
           Case{"80600102 00000000 0a0b0c0d", Status::ok, 12}, Case{"80600102 00000000 0a0b0c0d 01", Status::ok, 12},
           Case{"80600102 00000000 0a0b0c", Status::too_short, 0}, Case{"", Status::too_short, 0},
           Case{"40600102 00000000 0a0b0c0d", Status::bad_version, 0},
           Case{"c0600102 00000000 0a0b0c0d", Status::bad_version, 0},
           Case{"82600102 00000000 0a0b0c0d 00000001 00000002", Status::ok, 20},
           Case{"82600102 00000000 0a0b0c0d 00000001 000000", Status::bad_header, 0},
           Case{"90600102 00000000 0a0b0c0d bede0001 00000000", Status::ok, 20},
           Case{"90600102 00000000 0a0b0c0d bede0000", Status::ok, 16},
           Case{"90600102 00000000 0a0b0c0d bede00", Status::bad_header, 0},
           Case{"90600102 00000000 0a0b0c0d bede0001 000000", Status::bad_header, 0},
           Case{"90600102 00000000 0a0b0c0d bedeffff 00000000", Status::bad_header, 0},
           Case{"91600102 00000000 0a0b0c0d 00000001 bede0001 00000000", Status::ok, 24},
           Case{"91600102 00000000 0a0b0c0d 00000001", Status::bad_header, 0},
           Case{"a0600102 00000000 0a0b0c0d 000000ff", Status::ok, 12},  // a padding that can not be: not seen here
       }) {
    RtpHeader header{};
    EXPECT_EQ(parse_rtp(from_hex(c.packet), header), c.status) << c.packet;
    EXPECT_EQ(header.length, c.length) << c.packet;
    if (c.status == Status::ok) {
      EXPECT_EQ(header.ssrc, 0x0a0b0c0dU);
      EXPECT_EQ(header.sequence, 0x0102);
    }
  }
  RtpHeader header{};
  std::vector<std::uint8_t> packet = from_hex("80600102 00000000 0a0b0c0d");
  packet.resize(max_packet_length);
  EXPECT_EQ(parse_rtp(packet, header), Status::ok);
  packet.resize(max_packet_length + 1);
  EXPECT_EQ(parse_rtp(packet, header), Status::bad_header);
}

TEST(RtcpHeader, IsReadWithAllChecks) {
  struct Case {
    std::string_view packet;
    Status status;
  };
  for (const Case& c : {
           Case{"80c90001 0a0b0c0d", Status::ok}, Case{"80c90001 0a0b0c", Status::too_short},
           Case{"00c90001 0a0b0c0d", Status::bad_version}, Case{"80bf0001 0a0b0c0d", Status::bad_header},
           Case{"80c00001 0a0b0c0d", Status::ok}, Case{"80df0001 0a0b0c0d", Status::ok},
           Case{"80e00001 0a0b0c0d", Status::bad_header},
           Case{"81c8000d 0a0b0c0d", Status::ok},  // its length is not looked at
       }) {
    std::uint32_t ssrc = 0;
    EXPECT_EQ(parse_rtcp(from_hex(c.packet), ssrc), c.status) << c.packet;
    EXPECT_EQ(ssrc, c.status == Status::ok ? 0x0a0b0c0dU : 0U) << c.packet;
  }
}

TEST(PacketKind, DistinguishesRtpFromRtcpOnOnePort) {
  struct Case {
    std::string_view bytes;
    PacketKind kind;
  };
  for (const Case& c : {
           Case{"8060", PacketKind::rtp},
           Case{"80e0", PacketKind::rtp},  // payload type 96, without and with a marker
           Case{"80bf", PacketKind::rtp},
           Case{"80c0", PacketKind::rtcp},  // the edges of 192 to 223
           Case{"80df", PacketKind::rtcp},
           Case{"80e0", PacketKind::rtp},
           Case{"80c8", PacketKind::rtcp},
           Case{"81c9", PacketKind::rtcp},
           Case{"0001", PacketKind::other},  // STUN
           Case{"16fe", PacketKind::other},  // DTLS
           Case{"40c8", PacketKind::other},
           Case{"80", PacketKind::other},
           Case{"", PacketKind::other},
       }) {
    EXPECT_EQ(kind_of(from_hex(c.bytes)), c.kind) << c.bytes;
  }
}

TEST(Suite, IsFoundByItsName) {
  for (const SuiteFacts& suite : suites) {
    EXPECT_EQ(suite_named(suite.name), suite.suite);
    EXPECT_EQ(facts(suite.suite).name, suite.name);
  }
  EXPECT_EQ(suite_named("aes_cm_128_hmac_sha1_80"), Suite::aes_cm_128_hmac_sha1_80);
  EXPECT_EQ(suite_named("F8_128_HMAC_SHA1_80"), std::nullopt);
  EXPECT_EQ(facts(Suite::aes_cm_128_hmac_sha1_32).tag_length(Protocol::rtp), 4);
  EXPECT_EQ(facts(Suite::aes_cm_128_hmac_sha1_32).tag_length(Protocol::rtcp), 10);
}

TEST(Status, EachHasANameOfItsOwn) {
  EXPECT_EQ(status_name(Status::ok), "ok");
  EXPECT_EQ(status_name(Status::auth_failed), "auth_failed");
  EXPECT_EQ(status_name(Status::too_many_in_flight), "too_many_in_flight");
  for (unsigned i = 0; i < status_count; ++i) {
    EXPECT_FALSE(status_name(static_cast<Status>(i)).empty());
    EXPECT_FALSE(status_text(static_cast<Status>(i)).empty());
    for (unsigned k = 0; k < i; ++k) {
      EXPECT_NE(status_name(static_cast<Status>(i)), status_name(static_cast<Status>(k)));
    }
  }
}

}  // namespace
}  // namespace sluice::srtp
