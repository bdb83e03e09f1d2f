#include "packet/checksum.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "packet/builder.h"

namespace sluice::packet {
namespace {

// RFC 1071 as its text has it: 16-bit big-endian words, an odd byte padded with zero.
std::uint16_t reference_checksum(const Bytes& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += static_cast<std::uint32_t>(bytes[i] << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0));
    if (sum > 0xffff) {
      sum -= 0xffff;
    }
  }
  return static_cast<std::uint16_t>(~sum);
}

Bytes random_bytes(std::mt19937& random, std::size_t length) {
  Bytes bytes(length);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

Ipv4Header random_header(std::mt19937& random) {
  Bytes bytes = random_bytes(random, sizeof(Ipv4Header));
  bytes[0] = 0x45;
  auto& header = header_at<Ipv4Header>(bytes.data(), 0);
  header.checksum = ipv4_header_checksum(header);
  return header;
}

TEST(Checksum, Rfc1071Example) {
  const Bytes bytes = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(be16(fold_sum(partial_sum(bytes.data(), bytes.size()))), 0xddf2);
  EXPECT_EQ(be16(internet_checksum(bytes.data(), bytes.size())), 0x220d);
}

TEST(Checksum, Rfc1624Example) {
  // Section 4: equation 3 gives 0x0000 where equation 2 of RFC 1141 gave 0xffff.
  EXPECT_EQ(be16(update_checksum(be16(0xdd2f), be16(0x5555), be16(0x3285))), 0x0000);
}

TEST(Checksum, HeaderSeenOnTheWire) {
  const Bytes wire = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                      0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
  EXPECT_TRUE(ipv4_checksum_ok(wire.data()));
  EXPECT_EQ(be16(ipv4_header_checksum(header_at<Ipv4Header>(wire.data(), 0))), 0xb861);
  for (std::size_t bit = 0; bit < wire.size() * 8; ++bit) {
    Bytes flipped = wire;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_FALSE(ipv4_checksum_ok(flipped.data())) << "bit " << bit;
  }
}

TEST(Checksum, EqualsTheReferenceAtEveryLengthAndAlignment) {
  std::mt19937 random(1);
  for (std::size_t length = 0; length < 300; ++length) {
    const Bytes bytes = random_bytes(random, length);
    for (std::size_t shift = 0; shift < 4; ++shift) {
      Bytes shifted(shift);
      shifted.insert(shifted.end(), bytes.begin(), bytes.end());
      EXPECT_EQ(be16(internet_checksum(shifted.data() + shift, length)), reference_checksum(bytes)) << length;
    }
  }
}

TEST(Checksum, CarriesSurviveLongSums) {
  const Bytes ones(1 << 20, 0xff);
  EXPECT_EQ(internet_checksum(ones.data(), ones.size()), 0);
  EXPECT_EQ(fold_sum(~std::uint64_t{0}), 0xffff);
  EXPECT_EQ(fold_sum(0x1'0000'ffffU), 1);
  EXPECT_EQ(fold_sum(0), 0);
}

TEST(Checksum, PartsAddUpToTheWhole) {
  std::mt19937 random(2);
  const Bytes bytes = random_bytes(random, 101);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 2) {
    const std::uint64_t head = partial_sum(bytes.data(), cut);
    EXPECT_EQ(finish_sum(partial_sum(bytes.data() + cut, bytes.size() - cut, head)),
              internet_checksum(bytes.data(), bytes.size()));
  }
}

TEST(Checksum, IncrementalUpdateEqualsRecomputation) {
  std::mt19937 random(3);
  for (int round = 0; round < 200000; ++round) {
    Ipv4Header header = random_header(random);
    auto* bytes = reinterpret_cast<std::uint8_t*>(&header);
    // Any word but the checksum itself and the version's (a header is never all zeros).
    const std::size_t offset = std::array{2, 4, 6, 8, 12, 14, 16, 18}[random() % 8];
    std::uint16_t before;
    std::memcpy(&before, bytes + offset, 2);
    // 0 and 0xffff, the two zeros of ones' complement, more often than chance has them.
    const std::uint32_t pick = random();
    const auto after = static_cast<std::uint16_t>(pick % 8 == 0 ? 0 : pick % 8 == 1 ? 0xffff : pick >> 16);
    std::memcpy(bytes + offset, &after, 2);
    ASSERT_EQ(update_checksum(header.checksum, before, after), ipv4_header_checksum(header)) << "offset " << offset;
  }
}

TEST(Checksum, DecrementTtlEqualsRecomputation) {
  std::mt19937 random(4);
  for (int round = 0; round < 200000; ++round) {
    Ipv4Header header = random_header(random);
    if (header.ttl == 0) {
      continue;
    }
    // A quarter of the headers have an identification that makes their checksum one that is about to wrap.
    if (round % 4 == 0) {
      const auto wanted = static_cast<std::uint16_t>(0xfc00 + round % 1023);
      header.id = 0;
      header.id = update_checksum(ipv4_header_checksum(header), 0, be16(wanted));
      header.checksum = ipv4_header_checksum(header);
      ASSERT_EQ(be16(header.checksum), wanted);
    }
    const std::uint8_t ttl = header.ttl;
    decrement_ttl(header);
    ASSERT_EQ(header.ttl, ttl - 1);
    ASSERT_EQ(header.checksum, ipv4_header_checksum(header));
    ASSERT_TRUE(ipv4_checksum_ok(&header));
  }
}

TEST(Checksum, DecrementTtlTakesBothFormsOfZero) {
  // A header whose other words sum to 0xffff is valid with a checksum of 0x0000 and of 0xffff.
  Ipv4Header header{};
  header.version_ihl = 0x45;
  header.ttl = 9;
  header.id = ipv4_header_checksum(header);
  for (const std::uint16_t zero : {0x0000, 0xffff}) {
    Ipv4Header changed = header;
    changed.checksum = zero;
    ASSERT_TRUE(ipv4_checksum_ok(&changed));
    decrement_ttl(changed);
    EXPECT_EQ(changed.checksum, ipv4_header_checksum(changed));
  }
}

TEST(Checksum, HeaderChecksumCoversOptions) {
  const Bytes frame = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").options({0x94, 0x04, 0x00, 0x00}).build();
  const auto& header = header_at<Ipv4Header>(frame.data(), 14);
  EXPECT_EQ(header.version_ihl, 0x46);
  EXPECT_EQ(ipv4_header_checksum(header), header.checksum);
  EXPECT_EQ(internet_checksum(&header, 24), 0);
}

// The sum over pseudo-header and segment, written out byte by byte.
std::uint16_t reference_transport(Bytes pseudo, std::uint32_t length, std::uint8_t protocol, const Bytes& segment) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    pseudo.push_back(static_cast<std::uint8_t>(length >> shift));
  }
  pseudo.insert(pseudo.end(), {0, 0, 0, protocol});
  pseudo.insert(pseudo.end(), segment.begin(), segment.end());
  return reference_checksum(pseudo);
}

TEST(Checksum, TransportEqualsTheReference) {
  std::mt19937 random(5);
  for (std::size_t length = 8; length < 200; ++length) {
    const Bytes segment = random_bytes(random, length);
    const Bytes addresses = random_bytes(random, 32);
    const auto size = static_cast<std::uint32_t>(length);
    Ipv4Header four{};
    four.protocol = protocol_tcp;
    std::memcpy(&four.source, addresses.data(), 4);
    std::memcpy(&four.destination, addresses.data() + 4, 4);
    EXPECT_EQ(be16(transport_checksum(four, segment.data(), length)),
              reference_transport(Bytes(addresses.begin(), addresses.begin() + 8), size, protocol_tcp, segment));
    Ipv6Header six{};
    std::memcpy(six.source, addresses.data(), 16);
    std::memcpy(six.destination, addresses.data() + 16, 16);
    EXPECT_EQ(be16(transport_checksum(six, protocol_icmpv6, segment.data(), length)),
              reference_transport(addresses, size, protocol_icmpv6, segment));
  }
}

TEST(Checksum, UdpNeverSendsZero) {
  Ipv4Header ip{};
  ip.protocol = protocol_udp;
  UdpHeader udp{0, 0, be16(8), 0};
  udp.source_port = transport_checksum(ip, &udp, sizeof udp);  // what makes the sum 0xffff
  EXPECT_EQ(transport_checksum(ip, &udp, sizeof udp), 0xffff);
  ip.protocol = protocol_tcp;
  udp.destination_port = be16(protocol_udp - protocol_tcp);
  EXPECT_EQ(transport_checksum(ip, &udp, sizeof udp), 0);
}

}  // namespace
}  // namespace sluice::packet
