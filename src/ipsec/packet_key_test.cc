#include "ipsec/packet_key.h"

#include <gtest/gtest.h>

#include "ipsec/ipsec_trial_test.h"
#include "packet/builder.h"

namespace sluice::ipsec {
namespace {

using packet::PacketBuilder;

FlowKey flow_of(const PacketBuilder& packet) {
  const packet::Bytes frame = packet.build();
  packet::Metadata meta;
  packet::read_metadata(frame.data(), static_cast<std::uint32_t>(frame.size()), packet::Depth::transport, meta);
  return flow_key(packet_key(frame.data(), meta));
}

TEST(PacketKey, IsReadFromFrames) {
  EXPECT_EQ(flow_of(PacketBuilder().ipv4("10.0.0.1", "10.1.0.2").udp(1000, 2000).payload(8)),
            test::flow("10.0.0.1", "10.1.0.2", 17, 1000, 2000));
  EXPECT_EQ(flow_of(PacketBuilder().vlan(7).ipv6("2001:db8::1", "2001:db8::2").tcp(80, 40000)),
            test::flow("2001:db8::1", "2001:db8::2", 6, 80, 40000));
  EXPECT_EQ(flow_of(PacketBuilder().ipv4("10.0.0.1", "10.1.0.2").icmp(8, 3)),
            test::flow("10.0.0.1", "10.1.0.2", 1, 8, 3));
  EXPECT_EQ(flow_of(PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").icmp6(128, 1)),
            test::flow("2001:db8::1", "2001:db8::2", 58, 128, 1));
}

TEST(PacketKey, HasNoPortsWhereTheyAreNotKnown) {
  const auto later = PacketBuilder().ipv4("10.0.0.1", "10.1.0.2").udp(1000, 2000).payload(64).fragment(64, false);
  FlowKey expected = test::flow("10.0.0.1", "10.1.0.2", 17, 0, 0);
  expected.has_ports = false;
  EXPECT_EQ(flow_of(later), expected);
  expected.protocol = 253;
  EXPECT_EQ(flow_of(PacketBuilder().ipv4("10.0.0.1", "10.1.0.2").payload(64)), expected);
  expected.protocol = 1;
  EXPECT_EQ(flow_of(PacketBuilder().ipv4("10.0.0.1", "10.1.0.2").icmp(8, 0).cut_to(14 + 20 + 2)), expected);
}

TEST(PacketKey, MaskedKeysMatchAsSelectorsDo) {
  test::Random random(1);
  int matched = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Selector selector = random.selector();
    const FlowKey key = random.flow();
    const bool matches = selector.matches(key);
    ASSERT_EQ(masked_key(selector).has(packet_key(key)), matches) << selector.str();
    ASSERT_EQ(flow_key(packet_key(key)), key);
    matched += matches ? 1 : 0;
  }
  EXPECT_GT(matched, 1000);
}

TEST(PacketKey, HashesOnlyWhatIsInTheMask) {
  const MaskedKey masked = masked_key(test::selector("10.0.0.0/8", "10.1.0.0/16", 17));
  const PacketKey one = packet_key(test::flow("10.0.0.1", "10.1.0.1")),
                  two = packet_key(test::flow("10.9.9.9", "10.1.9.9"));
  EXPECT_EQ(masked_hash(one, masked.mask, 5), masked_hash(two, masked.mask, 5));
  EXPECT_EQ(masked_hash(one, masked.mask, 5), masked_hash(masked.value, masked.mask, 5));
  EXPECT_NE(masked_hash(one, masked.mask, 5), masked_hash(one, masked.mask, 6));
  const PacketKey other = packet_key(test::flow("10.0.0.1", "10.2.0.1"));
  EXPECT_NE(masked_hash(one, masked.mask, 5), masked_hash(other, masked.mask, 5));
}

}  // namespace
}  // namespace sluice::ipsec
