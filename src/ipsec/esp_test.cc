// ESP's framing alone: the cryptography in between is left out, so what is put on is clear, and can be taken off.
#include "ipsec/esp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "ipsec/ah.h"
#include "packet/builder.h"
#include "packet/checksum.h"
#include "packet/ecn.h"
#include "packet/metadata.h"

namespace sluice::ipsec {
namespace {

using packet::be16;
using packet::be32;
using packet::IpAddress;

constexpr std::uint32_t ethernet = 14;

SaSettings settings_of(Mode mode, int family, crypto::Cipher cipher = crypto::Cipher::aes_gcm_esp) {
  SaSettings sa;
  sa.id.spi = 0x12345678;
  sa.mode = mode;
  sa.source = *IpAddress::parse(family == 4 ? "192.0.2.1" : "2001:db8::1");
  sa.id.destination = *IpAddress::parse(family == 4 ? "192.0.2.2" : "2001:db8::2");
  sa.transform.cipher = cipher;
  sa.transform.icv_length = 16;
  return sa;
}

// UDP of `payload` bytes; `extensions`: IPv6 extension headers in front of it, of 8 bytes each.
std::vector<std::uint8_t> packet_of(int family, std::uint32_t payload, std::uint8_t tos = 0,
                                    std::vector<std::uint8_t> extensions = {}) {
  const std::uint32_t header = family == 4 ? 20 : 40;
  const auto udp_length = static_cast<std::uint16_t>(8 + payload);
  std::vector<std::uint8_t> frame(ethernet + header + 8 * extensions.size() + udp_length);
  frame[12] = family == 4 ? 0x08 : 0x86;
  frame[13] = family == 4 ? 0x00 : 0xdd;
  std::uint8_t* const ip = frame.data() + ethernet;
  if (family == 4) {
    auto& v4 = packet::header_at<packet::Ipv4Header>(ip, 0);
    v4.version_ihl = 0x45;
    v4.tos = tos;
    v4.total_length = be16(static_cast<std::uint16_t>(header + udp_length));
    v4.fragment = be16(packet::ipv4_dont_fragment);
    v4.ttl = 63;
    v4.protocol = packet::protocol_udp;
    v4.source = be32(0x0a010002);
    v4.destination = be32(0x0a020002);
    v4.checksum = packet::ipv4_header_checksum(v4);
  } else {
    auto& v6 = packet::header_at<packet::Ipv6Header>(ip, 0);
    v6.version_class_flow = be32(6U << 28 | std::uint32_t{tos} << 20);
    v6.payload_length = be16(static_cast<std::uint16_t>(8 * extensions.size() + udp_length));
    v6.hop_limit = 63;
    v6.source[0] = v6.destination[0] = 0x20;
    v6.source[15] = 1;
    v6.destination[15] = 2;
    std::uint8_t* named = &v6.next_header;
    for (std::size_t e = 0; e < extensions.size(); ++e) {
      *named = extensions[e];
      named = ip + 40 + 8 * e;
    }
    *named = packet::protocol_udp;
  }
  std::uint8_t* const udp = ip + header + 8 * extensions.size();
  packet::header_at<packet::UdpHeader>(udp, 0).length = be16(udp_length);
  for (std::uint32_t i = 0; i < payload; ++i) udp[8 + i] = static_cast<std::uint8_t>(i * 7);
  return frame;
}

struct Sealed {
  std::vector<std::uint8_t> frame;
  crypto::Job job;
};

Sealed put_on(const PacketFormat& format, const std::vector<std::uint8_t>& packet, std::uint64_t sequence) {
  InnerPacket inner;
  EXPECT_TRUE(look_at_inner(packet.data(), static_cast<std::uint32_t>(packet.size()), format.mode, inner));
  const std::uint32_t front = esp_front(format);
  Sealed sealed;
  sealed.frame.assign(front + packet.size() + esp_behind(format, inner), 0xee);
  std::memcpy(sealed.frame.data() + front, packet.data(), packet.size());
  esp_put_on(format, inner, sequence, sealed.frame.data(), sealed.job);
  return sealed;
}

std::vector<std::uint8_t> take_off(const PacketFormat& format, std::vector<std::uint8_t> frame) {
  OuterView view;
  EXPECT_TRUE(may_be_outer(frame.data(), static_cast<std::uint32_t>(frame.size())));
  EXPECT_EQ(find_outer(frame.data(), static_cast<std::uint32_t>(frame.size()), view), OuterKind::ipsec);
  crypto::Job job;
  EXPECT_TRUE(esp_look(format, frame.data(), view, 0, job));
  const Taken taken = esp_take_off(format, frame.data(), view);
  EXPECT_EQ(taken.content, Content::packet);
  return {frame.begin() + taken.front, frame.begin() + taken.front + taken.length};
}

TEST(Esp, WhatIsPutOnIsTakenOff) {
  for (const Mode mode : {Mode::tunnel, Mode::transport}) {
    for (const auto cipher : {crypto::Cipher::aes_gcm_esp, crypto::Cipher::aes_cbc, crypto::Cipher::null}) {
      for (const int outer : {4, 6}) {
        for (const int inner : {4, 6}) {
          if (mode == Mode::transport && inner != outer) continue;
          for (const bool udp : {false, true}) {
            SaSettings sa = settings_of(mode, outer, cipher);
            if (udp) sa.udp = UdpPorts{};
            const auto format = packet_format(sa);
            ASSERT_TRUE(format);
            for (std::uint32_t payload = 0; payload < 40; ++payload) {
              const auto packet = packet_of(inner, payload);
              const Sealed sealed = put_on(*format, packet, 7);
              EXPECT_EQ(take_off(*format, sealed.frame), packet) << payload;
              EXPECT_EQ((sealed.job.cipher_length) % format->align, 0);
              EXPECT_EQ(sealed.job.cipher_offset, format->clear_bytes());
              EXPECT_EQ(sealed.job.data + sealed.job.cipher_offset + sealed.job.cipher_length + format->icv,
                        reinterpret_cast<std::uint64_t>(sealed.frame.data()) + sealed.frame.size());
            }
          }
        }
      }
    }
  }
}

TEST(Esp, AhGoesAroundIt) {
  for (const int family : {4, 6}) {
    for (const bool udp : {false, true}) {
      SaSettings sa = settings_of(Mode::tunnel, family);
      if (udp) sa.udp = UdpPorts{};
      const auto format = packet_format(sa);
      SaSettings ah = settings_of(Mode::transport, family, crypto::Cipher::null);
      ah.id.protocol = Protocol::ah;
      ah.esn = true;
      const auto around = packet_format(ah);
      ASSERT_TRUE(around);
      const std::vector<std::uint8_t> esp = put_on(*format, packet_of(4, 33), 7).frame;
      InnerPacket inner;
      ASSERT_TRUE(look_at_inner(esp.data(), static_cast<std::uint32_t>(esp.size()), Mode::transport, inner));
      const std::uint32_t front = ah_front(*around), behind = ah_behind(*around);
      std::vector<std::uint8_t> frame(front + esp.size() + behind);
      std::copy(esp.begin(), esp.end(), frame.begin() + front);
      crypto::Job job, again;
      AhKept kept;
      ASSERT_TRUE(ah_put_on(*around, inner, 0x2'0000'0009, frame.data(), job, kept));
      ah_job(*around, frame.data(), static_cast<std::uint32_t>(frame.size() - behind), 0x2'0000'0009, again);
      EXPECT_EQ(std::memcmp(&job, &again, sizeof job), 0);
      std::fill(frame.end() - behind, frame.end(), 0xcc);  // as the job would write it
      ah_finish(*around, frame.data(), job, kept);
      frame.resize(frame.size() - behind);
      std::vector<std::uint8_t> expected = esp;
      if (udp && family == 6) {
        esp_checksum(*format, frame.data(), static_cast<std::uint32_t>(frame.size()));
        esp_checksum(*format, expected.data(), static_cast<std::uint32_t>(expected.size()));
      }
      EXPECT_EQ(ah_most_inner(*around, static_cast<std::uint32_t>(frame.size() - ethernet)), esp.size() - ethernet);
      OuterView view;
      ASSERT_EQ(find_outer(frame.data(), static_cast<std::uint32_t>(frame.size()), view), OuterKind::ipsec);
      EXPECT_EQ(view.protocol, Protocol::ah);
      frame.resize(frame.size() + behind);
      ASSERT_TRUE(ah_look(*around, frame.data(), view, 2, job, kept));
      const Taken taken = ah_take_off(*around, frame.data(), view, kept);
      ASSERT_EQ(taken.content, Content::packet);
      EXPECT_EQ(std::vector(frame.begin() + taken.front, frame.begin() + taken.front + taken.length), expected);
    }
  }
}

TEST(Esp, OuterHeadersSayWhatTheInnerOneSays) {
  const auto format = packet_format(settings_of(Mode::tunnel, 4));
  const Sealed sealed = put_on(*format, packet_of(4, 100, 0xb9), 0x1'0000'0005);
  packet::Metadata meta;
  packet::read_metadata(sealed.frame.data(), static_cast<std::uint32_t>(sealed.frame.size()), packet::Depth::transport,
                        meta);
  EXPECT_TRUE(meta.is_whole_packet());
  EXPECT_EQ(meta.end, sealed.frame.size());
  EXPECT_EQ(meta.protocol, packet::protocol_esp);
  const auto& ip = packet::header_at<packet::Ipv4Header>(sealed.frame.data(), ethernet);
  EXPECT_EQ(ip.tos, 0xb9);
  EXPECT_EQ(be16(ip.fragment), packet::ipv4_dont_fragment);
  EXPECT_TRUE(packet::ipv4_checksum_ok(&ip));
  const auto& esp = packet::header_at<packet::EspHeader>(sealed.frame.data(), meta.transport);
  EXPECT_EQ(be32(esp.spi), 0x12345678U);
  EXPECT_EQ(be32(esp.sequence), 5U);
}

TEST(Esp, ExtendedSequenceNumbersGoIntoTheJob) {
  SaSettings sa = settings_of(Mode::tunnel, 4);
  sa.esn = true;
  const auto format = packet_format(sa);
  const Sealed sealed = put_on(*format, packet_of(4, 10), 0x3'0000'0005);
  EXPECT_NE(sealed.job.flags & crypto::job_has_suffix, 0);
  EXPECT_EQ(sealed.job.suffix[3], 3);
}

TEST(Esp, IvsOfAKeyAreUnlikeEachOther) {
  const auto format = packet_format(settings_of(Mode::tunnel, 4, crypto::Cipher::aes_cbc));
  const std::size_t iv = ethernet + 20 + 8;
  const Sealed one = put_on(*format, packet_of(4, 10), 1), two = put_on(*format, packet_of(4, 10), 2);
  EXPECT_NE(std::memcmp(one.frame.data() + iv, two.frame.data() + iv, 16), 0);
  const auto again = packet_format(settings_of(Mode::tunnel, 4, crypto::Cipher::aes_cbc));
  EXPECT_NE(format->first_iv, again->first_iv) << "the same key after a restart";
}

TEST(Esp, TransportStandsBehindWhatRoutersLookAt) {
  const auto format = packet_format(settings_of(Mode::transport, 6));
  // Hop-by-hop, routing; destination options behind them are for the destination alone, and are protected.
  const auto packet = packet_of(6, 30, 0, {0, 43, 60});
  InnerPacket inner;
  ASSERT_TRUE(look_at_inner(packet.data(), static_cast<std::uint32_t>(packet.size()), Mode::transport, inner));
  EXPECT_EQ(inner.headers, 40 + 16);
  EXPECT_EQ(inner.protocol, packet::protocol_destination_options);
  EXPECT_EQ(take_off(*format, put_on(*format, packet, 1).frame), packet);
}

TEST(Esp, ChecksumsInsideAreMendedBehindNat) {
  struct Case {
    const char* what;
    packet::Bytes packet;
    std::size_t checksum;  // offset in the segment
  };
  for (const int family : {4, 6}) {
    const auto made = [&] {
      packet::PacketBuilder builder;
      family == 4 ? builder.ipv4("192.168.7.7", "192.0.2.2") : builder.ipv6("fd00::7", "2001:db8::2");
      return builder;
    };
    packet::Bytes none = made().udp(4000, 53).payload(31).build();
    const std::uint32_t header = family == 4 ? 20 : 40;
    none[ethernet + header + 6] = none[ethernet + header + 7] = 0;
    const Case cases[] = {{"TCP", made().tcp(4000, 80).payload(31).build(), 16},
                          {"UDP", made().udp(4000, 53).payload(31).build(), 6},
                          {"UDP without", none, 6},
                          {"neither", made().protocol(132).payload(31).build(), 8}};
    for (const Case& one : cases) {
      for (const bool udp : {false, true}) {
        SaSettings sa = settings_of(Mode::transport, family);
        if (udp) sa.udp = UdpPorts{};
        const auto format = packet_format(sa);
        std::vector<std::uint8_t> frame = put_on(*format, one.packet, 1).frame;
        // What NAT does with the outer header, which is the packet's own.
        const std::size_t source = ethernet + (family == 4 ? 12 : 8);
        frame[source + 1] = 99;
        if (family == 4) {
          auto& ip = packet::header_at<packet::Ipv4Header>(frame.data(), ethernet);
          ip.checksum = packet::ipv4_header_checksum(ip);
        }
        std::vector<std::uint8_t> expected = one.packet;
        expected[source + 1] = 99;
        if (family == 4) {
          auto& ip = packet::header_at<packet::Ipv4Header>(expected.data(), ethernet);
          ip.checksum = packet::ipv4_header_checksum(ip);
        }
        const bool counts =
            udp && one.what != std::string_view("UDP without") && one.what != std::string_view("neither");
        if (counts) {
          std::uint8_t* const segment = expected.data() + ethernet + header;
          segment[one.checksum] = segment[one.checksum + 1] = 0;
          const std::size_t bytes = expected.size() - ethernet - header;
          const std::uint8_t protocol = expected[ethernet + (family == 4 ? 9 : 6)];
          const std::uint16_t sum =
              family == 4 ? packet::transport_checksum(packet::header_at<packet::Ipv4Header>(expected.data(), ethernet),
                                                       segment, bytes)
                          : packet::transport_checksum(packet::header_at<packet::Ipv6Header>(expected.data(), ethernet),
                                                       protocol, segment, bytes);
          std::memcpy(segment + one.checksum, &sum, sizeof sum);
        }
        EXPECT_EQ(take_off(*format, frame), expected) << one.what << " over IPv" << family << (udp ? " in UDP" : "");
      }
    }
  }
}

TEST(Esp, PaddingHidesTheLength) {
  SaSettings sa = settings_of(Mode::tunnel, 4);
  sa.pad_to = 500;
  const auto format = packet_format(sa);
  const auto small = packet_of(4, 10), large = packet_of(4, 400);
  const Sealed one = put_on(*format, small, 1), two = put_on(*format, large, 2);
  EXPECT_EQ(one.frame.size(), two.frame.size());
  EXPECT_EQ(take_off(*format, one.frame), small);
  EXPECT_EQ(take_off(*format, two.frame), large);
}

TEST(Esp, MostInnerIsWhatFits) {
  for (const Mode mode : {Mode::tunnel, Mode::transport}) {
    for (const auto cipher : {crypto::Cipher::aes_gcm_esp, crypto::Cipher::aes_cbc}) {
      const auto format = packet_format(settings_of(mode, 4, cipher));
      for (std::uint32_t mtu = 200; mtu < 240; ++mtu) {
        const std::uint32_t most = esp_most_inner(*format, mtu, 20);
        const auto fits = put_on(*format, packet_of(4, most - 28), 1),
                   above = put_on(*format, packet_of(4, most - 27), 1);
        EXPECT_LE(fits.frame.size(), ethernet + mtu);
        EXPECT_GT(above.frame.size(), ethernet + mtu);
      }
    }
  }
  EXPECT_EQ(esp_most_inner(*packet_format(settings_of(Mode::tunnel, 4)), 50, 0), 0U);
}

TEST(Esp, CongestionGoesThroughTheTunnel) {
  const auto format = packet_format(settings_of(Mode::tunnel, 4));
  const auto outer_marked = [&](std::uint8_t inner_tos) {
    std::vector<std::uint8_t> frame = put_on(*format, packet_of(4, 10, inner_tos), 1).frame;
    frame[ethernet + 1] = static_cast<std::uint8_t>(frame[ethernet + 1] | packet::ce);
    return frame;
  };
  const auto marked = take_off(*format, outer_marked(packet::ect0));
  EXPECT_EQ(marked[ethernet + 1] & 3, packet::ce);
  EXPECT_TRUE(packet::ipv4_checksum_ok(marked.data() + ethernet));
  std::vector<std::uint8_t> deaf = outer_marked(packet::not_ect);
  OuterView view;
  ASSERT_EQ(find_outer(deaf.data(), static_cast<std::uint32_t>(deaf.size()), view), OuterKind::ipsec);
  EXPECT_EQ(esp_take_off(*format, deaf.data(), view).content, Content::congested);
}

TEST(Esp, DummiesAndWhatIsMalformedAreNoPackets) {
  const auto format = packet_format(settings_of(Mode::tunnel, 4));
  const auto packet = packet_of(4, 30);
  const Sealed sealed = put_on(*format, packet, 1);
  const std::size_t trailer = sealed.frame.size() - 16 - 2;
  const auto content_of = [&](auto change) {
    std::vector<std::uint8_t> frame = sealed.frame;
    change(frame);
    OuterView view;
    EXPECT_EQ(find_outer(frame.data(), static_cast<std::uint32_t>(frame.size()), view), OuterKind::ipsec);
    return esp_take_off(*format, frame.data(), view).content;
  };
  EXPECT_EQ(content_of([&](auto&) {}), Content::packet);
  EXPECT_EQ(content_of([&](auto& frame) { frame[trailer + 1] = packet::protocol_no_next; }), Content::dummy);
  EXPECT_EQ(content_of([&](auto& frame) { frame[trailer + 1] = packet::protocol_tcp; }), Content::malformed);
  EXPECT_EQ(content_of([&](auto& frame) { frame[trailer] = 255; }), Content::malformed);
  EXPECT_EQ(content_of([&](auto& frame) { frame[trailer] = 3; }), Content::malformed) << "other padding";
  const std::size_t inner = ethernet + 20 + 16;
  EXPECT_EQ(content_of([&](auto& frame) { frame[inner + 3] = 200; }), Content::malformed) << "longer than it is";
  EXPECT_EQ(content_of([&](auto& frame) { frame[inner] = 0x60; }), Content::malformed) << "the other family";
}

TEST(Esp, OfThePortOfIkeOnlyEspIsEsp) {
  SaSettings sa = settings_of(Mode::tunnel, 4);
  sa.udp = UdpPorts{.source = 4500, .destination = 4500};
  const auto format = packet_format(sa);
  Sealed sealed = put_on(*format, packet_of(4, 10), 1);
  OuterView view;
  const auto kind = [&] {
    return find_outer(sealed.frame.data(), static_cast<std::uint32_t>(sealed.frame.size()), view);
  };
  EXPECT_EQ(kind(), OuterKind::ipsec);
  EXPECT_TRUE(view.in_udp);
  EXPECT_EQ(view.udp_source, 4500);
  std::memset(sealed.frame.data() + ethernet + 28, 0, 4);  // the non-ESP marker
  EXPECT_EQ(kind(), OuterKind::other);
  sealed.frame.resize(ethernet + 29);
  packet::header_at<packet::Ipv4Header>(sealed.frame.data(), ethernet).total_length = be16(29);
  packet::header_at<packet::UdpHeader>(sealed.frame.data(), ethernet + 20).length = be16(9);
  sealed.frame.back() = 0xff;
  EXPECT_EQ(kind(), OuterKind::keepalive);
}

TEST(Esp, WhatIsTooShortIsNotLookedAt) {
  const auto format = packet_format(settings_of(Mode::tunnel, 4, crypto::Cipher::aes_cbc));
  const Sealed sealed = put_on(*format, packet_of(4, 60), 1);
  for (std::size_t length = ethernet + 20; length < sealed.frame.size(); ++length) {
    std::vector<std::uint8_t> frame(sealed.frame.begin(), sealed.frame.begin() + static_cast<long>(length));
    auto& ip = packet::header_at<packet::Ipv4Header>(frame.data(), ethernet);
    ip.total_length = be16(static_cast<std::uint16_t>(length - ethernet));
    OuterView view;
    const OuterKind kind = find_outer(frame.data(), static_cast<std::uint32_t>(frame.size()), view);
    EXPECT_EQ(kind, length < ethernet + 20 + 8 ? OuterKind::cut : OuterKind::ipsec);
    crypto::Job job;
    const bool whole_blocks = length >= ethernet + 20 + 24 + 16 + 16 && (length - ethernet - 20 - 24 - 16) % 16 == 0;
    EXPECT_EQ(kind == OuterKind::ipsec && esp_look(*format, frame.data(), view, 0, job), whole_blocks);
  }
}

}  // namespace
}  // namespace sluice::ipsec
