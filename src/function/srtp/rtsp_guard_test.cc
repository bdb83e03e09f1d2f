// Which frames of the kernel's are RTSP that went past the proxy.
#include "function/srtp/rtsp_guard.h"

#include "function/srtp/srtp_trial_test.h"

namespace sluice::function {
namespace {

constexpr std::uint8_t syn = 0x02, ack = 0x10, rst = 0x04, fin = 0x01, psh = 0x08;

PacketBuilder up(std::uint8_t ttl) {
  return PacketBuilder().ipv4("10.1.0.2", "10.2.0.7").ttl(ttl).tcp(40000, 554);
}
PacketBuilder down(std::uint8_t ttl) {
  return PacketBuilder().ipv4("10.2.0.7", "10.1.0.2").ttl(ttl).tcp(554, 40000);
}
PacketBuilder six(std::uint8_t ttl) {
  return PacketBuilder().ipv6("2001:db8:2::7", "2001:db8:1::2").ttl(ttl).tcp(554, 40000);
}

RtspGuard guard_of() {
  RtspOptions options;
  options.servers = {*packet::IpPrefix::parse("10.2.0.0/24"), *packet::IpPrefix::parse("2001:db8:2::/64")};
  options.ports = {554};
  return RtspGuard(options);
}

TEST(RtspGuard, KnowsTheProxysFramesByTheirTtl) {
  const RtspGuard guard = guard_of();
  const Bytes text(20, 'x');
  Bytes old_qinq = down(63).vlan(5).vlan(7).payload(text).tcp_flags(ack).build();
  packet::header_at<packet::EthernetHeader>(old_qinq.data(), 0).ethertype = packet::be16(0x9100);
  const std::tuple<std::string, Bytes, bool> cases[] = {
      {"a server answers behind 0x9100", old_qinq, true},
      {"a server answers behind four tags",
       down(63).vlan(1).vlan(2).vlan(3).vlan(4).payload(text).tcp_flags(ack).build(), true},
      {"a server answers behind five tags",
       down(63).vlan(1).vlan(2).vlan(3).vlan(4).vlan(5).payload(text).tcp_flags(ack).build(), true},
      {"a server answers behind an extension header", six(63).extension(60, {1}).payload(text).tcp_flags(ack).build(),
       true},
      {"the kernel refuses behind one", six(64).extension(60, {1}).tcp_flags(rst).build(), false},
      {"the proxy opens", up(255).tcp_flags(syn).build(), false},
      {"the proxy asks", up(255).payload(text).tcp_flags(ack).build(), false},
      {"the proxy answers", down(255).payload(text).tcp_flags(ack).build(), false},
      {"the proxy answers, IPv6", six(255).payload(text).tcp_flags(ack).build(), false},
      {"a client opens", up(63).tcp_flags(syn).build(), true},
      {"a client asks", up(254).payload(text).tcp_flags(ack | psh).build(), true},
      {"a server takes it", down(63).tcp_flags(syn | ack).build(), true},
      {"a server answers", down(64).payload(text).tcp_flags(ack).build(), true},
      {"a server answers, IPv6", six(63).payload(text).tcp_flags(ack).build(), true},
      {"a server answers in a VLAN", down(63).vlan(7).payload(text).tcp_flags(ack).build(), true},
      {"the proxy answers in a VLAN", down(255).vlan(7).payload(text).tcp_flags(ack).build(), false},
      {"a server ends", down(63).tcp_flags(fin | ack).build(), true},
      {"the kernel of a connection that has ended", down(64).tcp_flags(ack).build(), false},
      {"the kernel refuses", down(64).tcp_flags(rst | ack).build(), false},
      {"the kernel refuses, IPv6", six(64).tcp_flags(rst).build(), false},
      {"a fragment", down(63).payload(text).fragment(0, true).build(), true},
      {"another port", PacketBuilder().ipv4("10.2.0.7", "10.1.0.2").ttl(63).tcp(80, 40000).payload(text).build(),
       false},
      {"another host", PacketBuilder().ipv4("10.3.0.7", "10.1.0.2").ttl(63).tcp(554, 40000).build(), false},
      {"UDP", PacketBuilder().ipv4("10.2.0.7", "10.1.0.2").ttl(63).udp(554, 40000).payload(text).build(), false},
  };
  for (const auto& [name, frame, expected] : cases) {
    EXPECT_EQ(guard.went_past(frame.data(), static_cast<std::uint32_t>(frame.size())), expected) << name;
    for (std::size_t length = 0; length < frame.size(); ++length) {
      const Bytes cut(frame.begin(), frame.begin() + static_cast<long>(length));  // for the sanitizers
      (void)guard.went_past(cut.data(), static_cast<std::uint32_t>(length));
    }
  }
  const Bytes frame = up(63).payload(text).build();
  EXPECT_FALSE(RtspGuard().went_past(frame.data(), static_cast<std::uint32_t>(frame.size())));
}

TEST(Srtp, DropsRtspThatTheKernelForwards) {
  SrtpTrial trial("[srtp.rtsp]\nservers = [\"10.0.0.2\"]\nports = [554]\n");
  const auto reason = [&](std::uint8_t ttl) {
    const Bytes frame =
        PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").ttl(ttl).tcp(40000, 554).payload({1, 2, 3}).build();
    return trial.element().judge_from_host(0, frame.data(), static_cast<std::uint32_t>(frame.size()));
  };
  EXPECT_EQ(reason(63), srtp_rtsp_past_proxy);
  EXPECT_EQ(reason(255), packet::no_reason);
}

// In a batch, and where the kernel would forward it by itself (with IP options).
TEST(Srtp, AServerOfTheExplicitModeIsNotOpenedPastTheProxy) {
  SrtpTrial trial("[srtp.rtsp]\nlisten = [\"10.0.0.1\"]\n[[srtp.rtsp.server]]\naddress = \"10.0.0.2\"\n");
  const Bytes up = PacketBuilder().ipv4("10.0.0.9", "10.0.0.2").tcp(40000, 554).build();
  const Bytes odd = PacketBuilder().ipv4("10.0.0.9", "10.0.0.2").options({1, 1, 1, 1}).tcp(40000, 554).build();
  const Bytes down = PacketBuilder().ipv4("10.0.0.2", "10.0.0.9").tcp(554, 40000).payload({1, 2, 3}).build();
  const auto from_host = [&](const Bytes& frame) {
    return trial.element().judge_from_host(0, frame.data(), static_cast<std::uint32_t>(frame.size()));
  };
  EXPECT_EQ(trial.run({up}).front().reason, srtp_rtsp_past_proxy);
  EXPECT_EQ(trial.one(odd, {.transit = SrtpTrial::How::Transit::before}).reason, srtp_rtsp_past_proxy);
  EXPECT_EQ(trial.one(down).fate, engine::Fate::to_host);
  EXPECT_EQ(from_host(down), srtp_rtsp_past_proxy) << "forwarded, and none of the proxy's";
  EXPECT_EQ(from_host(up), packet::no_reason) << "the host's own";
}

}  // namespace
}  // namespace sluice::function
