#include "packet/flow_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <functional>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "packet/builder.h"
#include "packet/header_facts.h"
#include "packet/headers.h"

namespace sluice::packet {
namespace {

std::uint32_t hash_of(const Bytes& frame) {
  FrameView view{};
  const auto length = static_cast<std::uint32_t>(frame.size());
  EXPECT_EQ(parse_frame(frame.data(), length, view), no_reason);
  return flow_hash(frame.data(), length, view);
}
std::uint32_t hash_of(const PacketBuilder& builder) {
  return hash_of(builder.build());
}

PacketBuilder v4(bool back = false) {
  return back ? PacketBuilder().ipv4("10.1.0.1", "10.0.0.1") : PacketBuilder().ipv4("10.0.0.1", "10.1.0.1");
}
PacketBuilder v6(bool back = false) {
  return back ? PacketBuilder().ipv6("2001:db8::2", "2001:db8::1") : PacketBuilder().ipv6("2001:db8::1", "2001:db8::2");
}

TEST(FlowHash, BothDirectionsAreOneFlow) {
  EXPECT_EQ(hash_of(v4().tcp(5000, 80)), hash_of(v4(true).tcp(80, 5000)));
  EXPECT_EQ(hash_of(v4().udp(5000, 53).payload(9)), hash_of(v4(true).udp(53, 5000).payload(400).ttl(1)));
  EXPECT_EQ(hash_of(v4().icmp(8, 0, 1)), hash_of(v4(true).icmp(0, 0, 1)));
  EXPECT_EQ(hash_of(v6().tcp(5000, 80)), hash_of(v6(true).tcp(80, 5000)));
  EXPECT_EQ(hash_of(v6().icmp6(128, 0, 1)), hash_of(v6(true).icmp6(129, 0, 1)));
}

TEST(FlowHash, WhatMakesAnotherFlow) {
  const std::vector<std::pair<const char*, PacketBuilder>> flows = {
      {"tcp", v4().tcp(5000, 80)},
      {"udp on the same ports", v4().udp(5000, 80)},
      {"other source port", v4().tcp(5001, 80)},
      {"other destination port", v4().tcp(5000, 81)},
      {"ports exchanged, addresses not", v4().tcp(80, 5000)},
      {"other address", PacketBuilder().ipv4("10.0.0.1", "10.1.0.2").tcp(5000, 80)},
      {"sctp", v4().protocol(protocol_sctp).payload(Bytes{19, 136, 0, 80, 0, 0, 0, 0})},
      {"icmp", v4().icmp(8, 0)},
      {"ipv6 tcp", v6().tcp(5000, 80)},
      {"ipv6 udp", v6().udp(5000, 80)},
      {"ipv6 other port", v6().tcp(5000, 81)},
      {"ipv6 ports exchanged", v6().tcp(80, 5000)},
      {"ipv6 lower half differs", PacketBuilder().ipv6("2001:db8::1", "2001:db8::3").tcp(5000, 80)},
      {"ipv6 upper half differs", PacketBuilder().ipv6("2001:db8::1", "2001:db8:0:1::2").tcp(5000, 80)},
  };
  std::unordered_set<std::uint32_t> seen;
  for (const auto& [what, builder] : flows) {
    EXPECT_TRUE(seen.insert(hash_of(builder)).second) << what;
  }
}

TEST(FlowHash, FragmentsOfADatagramStayTogether) {
  const std::uint32_t first = hash_of(v4().udp(5000, 53).payload(1472).fragment(0, true));
  EXPECT_EQ(first, hash_of(v4().udp(5000, 53).payload(1480).fragment(1480, true)));
  EXPECT_EQ(first, hash_of(v4().udp(5000, 53).payload(100).fragment(2960, false)));
  EXPECT_EQ(first, hash_of(v4().udp(6000, 53).payload(1472).fragment(0, true)));
  const std::uint32_t first6 = hash_of(v6().udp(5000, 53).payload(1000).fragment(0, true));
  EXPECT_EQ(first6, hash_of(v6().udp(5000, 53).payload(1000).fragment(1008, false)));
}

TEST(FlowHash, PortsBehindOptionsCount) {
  EXPECT_EQ(hash_of(v4().tcp(5000, 80)), hash_of(v4().tcp(5000, 80).options(Bytes(8))));
}

// Of each packet: with tags and headers that those who get it skip, it is of the same conversation.
TEST(FlowHash, TagsAndExtensionHeadersMakeNoOtherFlow) {
  const auto tagged = [](PacketBuilder builder, unsigned tags, std::uint16_t outer = ethertype_vlan) {
    for (unsigned i = 0; i < tags; ++i) {
      builder.vlan(static_cast<std::uint16_t>(i));  // a priority tag (VLAN 0) first
    }
    Bytes frame = builder.build();
    header_at<EthernetHeader>(frame.data(), 0).ethertype = be16(outer);
    return frame;
  };
  const std::vector<std::pair<const char*, PacketBuilder>> packets = {
      {"tcp", v4().tcp(5000, 80)},
      {"udp", v4().udp(5000, 80)},
      {"behind options", v4().tcp(5000, 80).options(Bytes(8))},
      {"fragment", v4().udp(5000, 53).payload(1480).fragment(1480, true)},
      {"icmp", v4().icmp(8, 0)},
      {"ipv6 tcp", v6().tcp(5000, 80)},
      {"ipv6 icmp", v6().icmp6(128, 0)},
      {"ipv6 fragment", v6().udp(5000, 53).payload(1000).fragment(0, true)},
  };
  for (const auto& [what, builder] : packets) {
    for (const unsigned tags : {1U, 2U, 3U, 9U}) {
      EXPECT_EQ(hash_of(tagged(builder, tags)), hash_of(builder)) << what << ", " << tags << " tags";
    }
    for (const std::uint16_t outer : {ethertype_qinq, ethertype_old_qinq}) {
      EXPECT_EQ(hash_of(tagged(builder, 2, outer)), hash_of(builder)) << what << ", " << outer;
    }
  }
  EXPECT_EQ(hash_of(PacketBuilder().vlan(3).arp_request("10.0.0.1", "10.0.0.2")), 0U);
  for (std::size_t length = 14; length < 14 + 4 + 20; ++length) {
    EXPECT_EQ(hash_of(PacketBuilder(v4().vlan(0).tcp(5000, 80)).cut_to(length)), 0U) << length;
  }

  struct Header {
    std::uint8_t protocol;
    std::size_t bytes;
  };
  const std::vector<std::vector<Header>> chains = {
      {{protocol_destination_options, 6}},
      {{protocol_hop_by_hop, 6}},
      {{protocol_routing, 22}},
      {{protocol_hop_by_hop, 14}, {protocol_destination_options, 6}, {protocol_routing, 6}},
      std::vector<Header>(40, {protocol_destination_options, 6}),
  };
  for (const std::vector<Header>& chain : chains) {
    const auto with = [&](PacketBuilder builder) {
      for (const Header& header : chain) {
        builder.extension(header.protocol, Bytes(header.bytes));
      }
      return builder;
    };
    EXPECT_EQ(hash_of(with(v6()).tcp(5000, 80)), hash_of(v6().tcp(5000, 80)));
    EXPECT_EQ(hash_of(with(v6(true)).tcp(80, 5000)), hash_of(v6().tcp(5000, 80)));
    EXPECT_EQ(hash_of(with(v6()).udp(5000, 80)), hash_of(v6().udp(5000, 80)));
    EXPECT_EQ(hash_of(with(v6()).icmp6(128, 0)), hash_of(v6().icmp6(128, 0)));
    EXPECT_EQ(hash_of(with(v6()).tcp(5000, 80).fragment(0, false)), hash_of(v6().tcp(5000, 80))) << "atomic";
    EXPECT_EQ(hash_of(tagged(with(v6()).tcp(5000, 80), 2)), hash_of(v6().tcp(5000, 80)));
    // The first fragment's headers count for its receiver: others may come without, and with others behind theirs.
    EXPECT_EQ(hash_of(with(v6()).udp(5000, 53).payload(1000).fragment(0, true)),
              hash_of(v6().protocol(protocol_destination_options).payload(1000).fragment(1008, false)));
  }
}

// Whatever the headers and wherever they are cut: as of a packet of the transport and the ports that inspection reads.
TEST(FlowHash, TheSameHeadersAreWalkedAsForInspection) {
  std::mt19937 random(3);
  const auto below = [&](unsigned number) { return static_cast<unsigned>(random() % number); };
  constexpr std::uint8_t next_headers[] = {protocol_hop_by_hop, protocol_destination_options,
                                           protocol_routing,    protocol_fragment,
                                           protocol_tcp,        protocol_udp,
                                           protocol_no_next};
  unsigned with_ports = 0, fragments = 0;
  for (int round = 0; round < 100'000; ++round) {
    Bytes payload(8UL * (1 + below(8)) + below(8));
    for (std::size_t at = 0; at < payload.size(); at += 8) {
      payload[at] = next_headers[below(std::size(next_headers))];
      // No header, or some units of eight bytes; of a fragment header a place.
      if (at + 1 < payload.size()) payload[at + 1] = static_cast<std::uint8_t>(below(3) == 0 ? below(3) : 0);
      if (at + 3 < payload.size() && below(4) == 0) payload[at + 3] = static_cast<std::uint8_t>(below(16));
    }
    const Bytes frame = v6().protocol(next_headers[below(std::size(next_headers))]).payload(payload).build();
    HeaderFacts facts;
    read_headers({reinterpret_cast<const char*>(frame.data()), frame.size()}, facts);
    ASSERT_EQ(facts.family, 6);
    if (facts.fragment()) {
      ++fragments;
      ASSERT_EQ(hash_of(frame), hash_of(v6().udp(1, 2).payload(8).fragment(8, true))) << round;
    } else if (facts.has_ports) {
      ++with_ports;
      PacketBuilder plain = v6();
      facts.has_tcp ? plain.tcp(facts.source_port, facts.destination_port)
                    : plain.udp(facts.source_port, facts.destination_port);
      ASSERT_EQ(hash_of(frame), hash_of(plain)) << round;
    } else {
      hash_of(frame);  // reads nothing behind it
    }
  }
  EXPECT_GT(with_ports, 5000U);
  EXPECT_GT(fragments, 4000U);
}

TEST(FlowHash, PacketsWithoutPortsAreHashedByAddress) {
  // Two bytes of payload, and two more of padding that must not be taken for ports.
  const auto cut = [](std::uint8_t padding) {
    Bytes frame = v4().protocol(protocol_udp).payload(Bytes{1, 2}).build();
    frame.insert(frame.end(), 24, padding);
    return frame;
  };
  EXPECT_EQ(hash_of(cut(0)), hash_of(cut(0xff)));
  EXPECT_EQ(hash_of(PacketBuilder().arp_request("10.0.0.1", "10.0.0.2")), 0U);
}

// Chi-square of the hashes over 64 buckets, by remainder and by multiplication: 63 degrees of freedom, mean 63,
// standard deviation 11.2. 130 is six deviations away.
void expect_even(const char* what, const std::vector<std::uint32_t>& hashes) {
  constexpr std::size_t buckets = 64;
  const std::function<std::size_t(std::uint32_t)> ways[] = {
      [](std::uint32_t hash) { return hash % buckets; },
      [](std::uint32_t hash) { return static_cast<std::size_t>((std::uint64_t{hash} * buckets) >> 32); }};
  for (const auto& way : ways) {
    std::array<double, buckets> count{};
    for (const std::uint32_t hash : hashes) {
      ++count[way(hash)];
    }
    const double expected = static_cast<double>(hashes.size()) / buckets;
    double chi_square = 0;
    for (const double n : count) {
      chi_square += (n - expected) * (n - expected) / expected;
    }
    EXPECT_LT(chi_square, 130) << what;
  }
}

TEST(FlowHash, SpreadsFlowsThatLookAlike) {
  std::vector<std::uint32_t> by_port, by_host, both_ends, by_host6, by_subnet6;
  const IpAddress server = IpAddress::v4(0x0a010001);
  const IpAddress server6 = *IpAddress::parse("2001:db8::1");
  for (std::uint32_t i = 0; i < 20000; ++i) {
    by_port.push_back(hash_of(v4().udp(static_cast<std::uint16_t>(1024 + i), 53)));
    by_host.push_back(hash_of(PacketBuilder().ipv4(IpAddress::v4(0x0a020000 + i), server).udp(5000, 53)));
    both_ends.push_back(
        hash_of(PacketBuilder().ipv4(IpAddress::v4(0x0a020000 + i), IpAddress::v4(0x0a030000 + i)).icmp(8, 0)));
    IpAddress host6 = server6;
    host6.bytes[14] = static_cast<std::uint8_t>(0x40 + (i >> 8));
    host6.bytes[15] = static_cast<std::uint8_t>(i);
    by_host6.push_back(hash_of(PacketBuilder().ipv6(host6, server6).tcp(5000, 80)));
    IpAddress subnet6 = server6;
    subnet6.bytes[5] = static_cast<std::uint8_t>(0x40 + (i >> 8));
    subnet6.bytes[6] = static_cast<std::uint8_t>(i);
    by_subnet6.push_back(hash_of(PacketBuilder().ipv6(subnet6, server6).icmp6(128, 0)));
  }
  expect_even("ports of one host", by_port);
  expect_even("hosts of one subnet", by_host);
  expect_even("hosts in step", both_ends);
  expect_even("IPv6 hosts of one subnet", by_host6);
  expect_even("IPv6 subnets", by_subnet6);
}

TEST(FlowHash, EveryBitOfTheFlowChangesHalfTheHash) {
  std::mt19937 random(9);
  constexpr unsigned rounds = 400;
  const auto average_flips = [&](Bytes frame, std::size_t first, std::size_t last, std::size_t bit) {
    unsigned flips = 0;
    for (unsigned round = 0; round < rounds; ++round) {
      for (std::size_t i = first; i < last; ++i) {
        frame[i] = static_cast<std::uint8_t>(random());
      }
      const FrameView view{FrameKind::ipv4, 64, protocol_udp, 14, static_cast<std::uint16_t>(frame.size() - 14), false};
      const auto length = static_cast<std::uint32_t>(frame.size());
      const std::uint32_t before = flow_hash(frame.data(), length, view);
      frame[first + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      flips += static_cast<unsigned>(std::popcount(before ^ flow_hash(frame.data(), length, view)));
    }
    return static_cast<double>(flips) / rounds;
  };
  const Bytes four = v4().udp(1, 2).build();
  for (std::size_t bit = 0; bit < 12 * 8; ++bit) {
    EXPECT_NEAR(average_flips(four, 26, 38, bit), 16, 1.5) << "IPv4 bit " << bit;
  }
  const Bytes six = v6().udp(1, 2).build();
  for (std::size_t bit = 0; bit < 36 * 8; ++bit) {
    EXPECT_NEAR(average_flips(six, 22, 58, bit), 16, 1.5) << "IPv6 bit " << bit;
  }
}

}  // namespace
}  // namespace sluice::packet
