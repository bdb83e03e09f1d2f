// Packets in tunnels: inspected as ones that came by themselves, for the frame that carries them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flow/fragment_test.h"
#include "function/inspect/inspection_trial_test.h"
#include "function/inspect/with_policy_test.h"

namespace sluice::function {
namespace {

using flow::test::fragments_of;
using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack;

Bytes joined(Bytes front, const Bytes& behind) {
  front.insert(front.end(), behind.begin(), behind.end());
  return front;
}

Bytes without_link(const Bytes& frame) {
  return {frame.begin() + sizeof(packet::EthernetHeader), frame.end()};
}

PacketBuilder outside() {
  return PacketBuilder().ipv4("192.0.2.1", "192.0.2.2");
}

// Of a frame: what carries it, or its packet.
Bytes in_vxlan(const Bytes& frame) {
  return outside().udp(50000, 4789).payload(joined({8, 0, 0, 0, 0, 0, 7, 0}, frame)).build();
}
Bytes in_gre(const Bytes& frame) {
  const std::uint8_t high = frame[12], low = frame[13];
  return outside().protocol(47).payload(joined({0, 0, high, low}, without_link(frame))).build();
}
Bytes in_ip(const Bytes& frame) {
  return outside().protocol(frame[12] == 8 ? 4 : 41).payload(without_link(frame)).build();
}
Bytes in_geneve(const Bytes& frame) {
  return outside().udp(50000, 6081).payload(joined({0, 0, 0x65, 0x58, 0, 0, 7, 0}, frame)).build();
}
Bytes in_gtp_u(const Bytes& frame) {
  const Bytes packet = without_link(frame);
  const auto size = static_cast<std::uint16_t>(packet.size());
  const Bytes header = {0x30, 255, static_cast<std::uint8_t>(size >> 8), static_cast<std::uint8_t>(size), 0, 0, 0, 1};
  return outside().udp(50000, 2152).payload(joined(header, packet)).build();
}
Bytes in_mpls(const Bytes& frame) {
  return PacketBuilder().ethertype(0x8847).payload(joined({0, 0, 0x11, 64}, without_link(frame))).build();
}
Bytes in_pppoe(const Bytes& frame) {
  const Bytes packet = without_link(frame);
  const std::size_t size = packet.size() + 2;
  const std::uint8_t protocol = frame[12] == 8 ? 0x21 : 0x57;
  const Bytes header = {0x11, 0,       0, 5, static_cast<std::uint8_t>(size >> 8), static_cast<std::uint8_t>(size),
                        0,    protocol};
  return PacketBuilder().ethertype(0x8864).payload(joined(header, packet)).build();
}
Bytes in_nsh(const Bytes& frame) {
  return PacketBuilder().ethertype(0x894f).payload(joined({0, 2, 1, 3, 0, 0, 1, 255}, frame)).build();
}

struct Kind {
  const char* name;
  Bytes (*carry)(const Bytes& frame);
};
constexpr Kind kinds[] = {{"VXLAN", in_vxlan}, {"GRE", in_gre},   {"IP in IP", in_ip}, {"Geneve", in_geneve},
                          {"GTP-U", in_gtp_u}, {"MPLS", in_mpls}, {"PPPoE", in_pppoe}, {"NSH", in_nsh}};

class InspectionTunnels : public testing::Test, public AlertSink {
 protected:
  void use(const std::string& text, bool tunnels = true) {
    rules_ = test::rules_of(test::with_policy(text, true));
    ASSERT_NE(rules_, nullptr);
    InspectionSettings settings = test::small_settings();
    settings.drop_on_overload = true;
    settings.tunnels = tunnels;
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(rules_), settings, *this);
  }
  void alert(const Alert& alert) override {
    sids_.push_back(rules_->detector().rules().rules[alert.rule].sid);
    source_port_ = alert.packet->source_port;
    tunnel_ = alert.tunnel == nullptr ? TunnelEnds() : *alert.tunnel;
  }
  void dropped(const DroppedFrame& frame) override { drops_.push_back(frame.reason); }

  Judgement feed(const Bytes& bytes) {
    const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return test::inspect(*inspection_, frame, now_ += 1000, by_device_);
  }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }
  std::uint64_t in_tunnels() const { return inspection_->counters().in_tunnels; }

  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
  std::vector<DropReason> drops_;
  std::uint16_t source_port_ = 0;  // of the last alert
  TunnelEnds tunnel_;              // likewise
  std::uint64_t now_ = 0;
  bool by_device_ = false;
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

Bytes datagram(bool v4, std::uint16_t port, const std::string& text = "evil content") {
  PacketBuilder builder;
  v4 ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
  return builder.udp(4000, port).payload(Bytes(text.begin(), text.end())).build();
}

TEST_F(InspectionTunnels, ARuleSeesThePacketInEachKind) {
  for (const Kind& kind : kinds) {
    for (const bool v4 : {true, false}) {
      for (const bool by_device : {false, true}) {
        by_device_ = by_device;
        use("drop udp any 4000 -> any 53 (content:\"evil content\"; sid:1;)\n");
        EXPECT_TRUE(feed(kind.carry(datagram(v4, 53))).drop) << kind.name << v4 << by_device;
        EXPECT_THAT(alerts(), ElementsAre(1)) << kind.name << v4 << by_device;
        EXPECT_THAT(std::exchange(drops_, {}), ElementsAre(DropReason::rules));
        EXPECT_EQ(source_port_, 4000);
        EXPECT_FALSE(feed(kind.carry(datagram(v4, 54))).drop) << kind.name;
        EXPECT_FALSE(feed(kind.carry(datagram(v4, 53, "fine content"))).drop) << kind.name;
        EXPECT_THAT(alerts(), IsEmpty());
        EXPECT_EQ(in_tunnels(), 3U) << kind.name;
        EXPECT_EQ(inspection_->counters().frames, 3U);
        EXPECT_EQ(inspection_->counters().not_ip, 0U) << kind.name;
      }
    }
  }
}

TEST_F(InspectionTunnels, NoneIsLookedIntoWhereThatIsOff) {
  use("drop udp any 4000 -> any 53 (content:\"evil content\"; sid:1;)\n", false);
  for (const Kind& kind : kinds) EXPECT_FALSE(feed(kind.carry(datagram(true, 53))).drop) << kind.name;
  EXPECT_EQ(in_tunnels(), 0U);
}

TEST_F(InspectionTunnels, WhatCarriesItIsInspectedBesides) {
  use("alert udp any any -> any 4789 (content:\"content\"; sid:1;)\nalert udp any any -> any 53 (sid:2;)\n");
  feed(in_vxlan(datagram(true, 53)));
  EXPECT_THAT(alerts(), ElementsAre(1, 2));
  use("pass udp any any -> any 4789 (sid:1;)\ndrop udp any any -> any 53 (sid:2;)\n");
  EXPECT_TRUE(feed(in_vxlan(datagram(true, 53))).drop) << "passed is what is outside";
  use("drop udp any any -> any 4789 (sid:1;)\nalert udp any any -> any 53 (sid:2;)\n");
  alerts();
  EXPECT_TRUE(feed(in_vxlan(datagram(true, 53))).drop);
  EXPECT_THAT(alerts(), ElementsAre(1)) << "nothing more to look at";
}

TEST_F(InspectionTunnels, AnAlertSaysInWhichItWas) {
  use("alert udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
  feed(datagram(true, 53));
  EXPECT_EQ(tunnel_.depth, 0);
  feed(in_vxlan(datagram(true, 53)));
  EXPECT_EQ(tunnel_.kind, packet::Tunnel::vxlan);
  EXPECT_EQ(tunnel_.depth, 1);
  EXPECT_EQ(tunnel_.destination_port, 4789);
  EXPECT_EQ(tunnel_.source, *packet::IpAddress::parse("192.0.2.1"));
  feed(in_vxlan(in_gre(datagram(true, 53))));
  EXPECT_EQ(tunnel_.kind, packet::Tunnel::gre);
  EXPECT_EQ(tunnel_.depth, 2);
  EXPECT_EQ(tunnel_.destination_port, 4789) << "of the outermost one";
  for (const Bytes& fragment : fragments_of(datagram(true, 53), 7, 8)) feed(in_gre(fragment));
  EXPECT_EQ(tunnel_.kind, packet::Tunnel::gre) << "of a datagram of fragments, too";
  EXPECT_EQ(tunnel_.protocol, 47);
  feed(in_mpls(datagram(true, 53)));
  EXPECT_EQ(tunnel_.kind, packet::Tunnel::mpls);
  EXPECT_EQ(tunnel_.family, 0);
}

// Nobody knows the way back to an end in a tunnel.
TEST_F(InspectionTunnels, ARejectDrops) {
  use("reject udp any any -> any 53 (sid:1;)\n");
  const Judgement judgement = feed(in_vxlan(datagram(true, 53)));
  EXPECT_TRUE(judgement.drop);
  EXPECT_FALSE(judgement.reject);
}

TEST_F(InspectionTunnels, StreamsArePutTogether) {
  for (const Kind& kind : kinds) {
    use("drop tcp any any -> any 80 (flow:established,to_server; content:\"evil content\"; sid:1;)\n");
    const auto segment = [&](bool up, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledged,
                             const std::string& text = "") {
      return feed(kind.carry(test::segment_of(up, flags, sequence, acknowledged, text).build()));
    };
    segment(true, syn, 1000, 0);
    segment(false, syn | ack, 5000, 1001);
    segment(true, ack, 1001, 5001);
    EXPECT_FALSE(segment(true, ack, 1001, 5001, "so evil con").drop) << kind.name;
    EXPECT_TRUE(segment(true, ack, 1012, 5001, "tent, so it is").drop) << kind.name;
    EXPECT_THAT(alerts(), ElementsAre(1)) << kind.name;
    EXPECT_TRUE(segment(true, ack, 1026, 5001, "and more").drop) << kind.name << ": the rest of its flow";
  }
}

TEST_F(InspectionTunnels, FragmentsInThemArePutTogether) {
  const std::string text = std::string(52, '.') + "evil content" + std::string(60, '.');
  std::uint32_t id = 0;
  for (const Kind& kind : kinds) {
    for (const bool v4 : {true, false}) {
      use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
      std::vector<bool> drops;
      for (const Bytes& fragment : fragments_of(datagram(v4, 53, text), ++id, 64)) {
        drops.push_back(feed(kind.carry(fragment)).drop);
      }
      EXPECT_THAT(drops, ElementsAre(false, false, true)) << kind.name << v4;
      EXPECT_THAT(alerts(), ElementsAre(1)) << kind.name << v4;
    }
  }
}

TEST_F(InspectionTunnels, ATunnelSOwnFragmentsArePutTogether) {
  use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
  for (const Kind& kind : {Kind{"VXLAN", in_vxlan}, Kind{"GRE", in_gre}, Kind{"IP in IP", in_ip}}) {
    std::vector<bool> drops;
    for (const Bytes& fragment : fragments_of(kind.carry(datagram(true, 53)), 9, 48)) {
      drops.push_back(feed(fragment).drop);
    }
    EXPECT_THAT(drops, testing::Contains(true)) << kind.name;
    EXPECT_TRUE(drops.back()) << kind.name;
    EXPECT_THAT(alerts(), ElementsAre(1)) << kind.name;
  }
}

TEST_F(InspectionTunnels, OneInAnotherIsLookedIntoTooUpToSixteen) {
  use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
  Bytes frame = datagram(true, 53);
  for (unsigned depth = 1; depth <= 15; ++depth) {
    frame = depth % 2 == 0 ? in_ip(frame) : in_gre(frame);
    EXPECT_TRUE(feed(frame).drop) << depth;
    EXPECT_THAT(alerts(), ElementsAre(1)) << depth;
    EXPECT_THAT(std::exchange(drops_, {}), ElementsAre(DropReason::rules)) << depth;
  }
  frame = in_gre(in_ip(in_gre(frame)));
  EXPECT_TRUE(feed(frame).drop);
  EXPECT_THAT(alerts(), IsEmpty());
  EXPECT_THAT(drops_, ElementsAre(DropReason::budget)) << "what is left might be what is looked for";
}

// Cut and changed anywhere: what is read lies in the frame (the sanitizers see it).
TEST_F(InspectionTunnels, AnyBytesMayBeInOne) {
  use("alert udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
  for (const Kind& kind : kinds) {
    const Bytes whole = kind.carry(in_ip(datagram(false, 53)));
    for (std::size_t length = 0; length < whole.size(); ++length) {
      Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      cut.shrink_to_fit();
      feed(cut);
      Bytes changed = whole;
      changed[length] ^= 0x41;
      feed(changed);
    }
  }
}

}  // namespace
}  // namespace sluice::function
