// Which UDP could be media of a server, and what the element makes of it where no stream protects it.
#include "function/srtp/server_media.h"

#include "function/srtp/srtp_trial_test.h"

namespace sluice::function {
namespace {

MediaKey key_of(const char* source, unsigned from, const char* destination, unsigned to) {
  return media_key(*packet::IpAddress::parse(source), static_cast<std::uint16_t>(from),
                   *packet::IpAddress::parse(destination), static_cast<std::uint16_t>(to));
}

TEST(ServerPrefixes, ContainWhatThePrefixesDo) {
  for (unsigned length = 0; length <= 128; ++length) {
    const bool four = length <= 32;
    for (const char* text : {"10.2.3.4", "2001:db8:2:3:4:5:6:7"}) {
      const auto address = *packet::IpAddress::parse(text);
      if (address.family == 4 && !four) continue;
      const auto prefix = packet::IpPrefix::of(address, length);
      const ServerPrefixes servers({*packet::IpPrefix::parse("192.0.2.0/24"), prefix});
      for (unsigned bit = 0; bit < address.bits(); ++bit) {
        packet::IpAddress other = address;
        other.bytes[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
        EXPECT_EQ(servers.contains(other.family, other.bytes.data()), prefix.contains(other)) << prefix.str() << bit;
      }
      EXPECT_TRUE(servers.contains(address.family, address.bytes.data())) << prefix.str();
    }
  }
  EXPECT_TRUE(ServerPrefixes().empty());
  EXPECT_FALSE(ServerPrefixes().contains(4, packet::IpAddress::v4(0).bytes.data()));
}

TEST(ServerMedia, BySourceAndPorts) {
  RtspOptions options;
  options.servers = {*packet::IpPrefix::parse("10.2.0.0/24"), *packet::IpPrefix::parse("2001:db8:2::/64")};
  options.listen = {*packet::IpAddress::parse("10.1.0.1")};
  const ServerMedia media(options);
  const char *server = "10.2.0.7", *client = "10.1.0.2", *server6 = "2001:db8:2::7", *client6 = "2001:db8:1::2";
  const std::tuple<const char*, MediaKey, bool> cases[] = {
      {"RTP", key_of(server, 5004, client, 6000), true},
      {"RTCP", key_of(server, 5005, client, 6001), true},
      {"the lowest ports", key_of(server, 1024, client, 1024), true},
      {"between servers", key_of(server, 5004, "10.2.0.8", 6000), true},
      {"IPv6", key_of(server6, 5004, client6, 6000), true},
      {"DNS answers", key_of(server, 53, client, 40000), false},
      {"NTP asks", key_of(server, 40000, client, 123), false},
      {"IPv6 from a low port", key_of(server6, 1023, client6, 6000), false},
      {"the way back", key_of(client, 6001, server, 5005), false},
      {"another's", key_of("10.3.0.7", 5004, client, 6000), false},
      {"another's, IPv6", key_of("2001:db8:3::7", 5004, client6, 6000), false},
      {"to the proxy", key_of(server, 5004, "10.1.0.1", 20000), false},
      {"to many", key_of(server, 5353, "224.0.0.251", 5353), false},
      {"to many, IPv6", key_of(server6, 5353, "ff02::fb", 5353), false},
  };
  for (const auto& [name, key, expected] : cases) EXPECT_EQ(media.may_be(key), expected) << name;
  options.upstream.push_back({.address = *packet::IpAddress::parse("10.3.0.7"), .port = 554, .name = {}, .path = {}});
  EXPECT_TRUE(ServerMedia(options).may_be(key_of("10.3.0.7", 5004, client, 6000))) << "of the explicit mode";
  EXPECT_FALSE(ServerMedia(options).may_be(key_of("10.3.0.8", 5004, client, 6000)));
  EXPECT_FALSE(ServerMedia(options).may_be(key_of("10.3.0.7", 5004, "10.1.0.1", 20000))) << "the host's";
  EXPECT_TRUE(media.may_be(key_of(server, 0, client, 0), true));
  EXPECT_FALSE(media.may_be(key_of(server, 0, client, 0)));
  EXPECT_FALSE(media.may_be(key_of(client, 0, server, 0), true));
  options.drops_unprotected = false;
  EXPECT_FALSE(ServerMedia(options).may_be(key_of(server, 5004, client, 6000)));
}

// The streams of these trials come from 10.0.0.1:5004 and go to 10.0.0.2:6000.
const std::string servers = "[srtp.rtsp]\nservers = [\"10.0.0.1\", \"2001:db8::1\"]\n";

struct Case {
  std::string what, name;
  Bytes frame;
};

// The outermost tag's.
Bytes of_type(std::uint16_t ethertype, Bytes frame) {
  packet::header_at<packet::EthernetHeader>(frame.data(), 0).ethertype = packet::be16(ethertype);
  return frame;
}

TEST(Srtp, MediaOfAServerThatNobodyProtectsGoNowhere) {
  SrtpTrial trial(servers + stream_text("protect"));
  SrtpTrial lets(servers + "unprotected = \"pass\"\n" + stream_text("protect"));
  const auto from = [](std::uint16_t port) { return udp_frame(rtp(1, 100), false, port, 6002); };
  const Case cases[] = {
      {"RTP", "srtp_unprotected", from(5004).build()},
      {"IPv6", "srtp_unprotected", udp_frame(rtp(1, 100), true).build()},
      {"another length", "srtp_unprotected", from(5004).udp_length(30).build()},
      {"a VLAN", "srtp_unprotected", from(5004).vlan(7).build()},
      {"a VLAN of 0x9100", "srtp_unprotected", of_type(0x9100, from(5004).vlan(7).build())},
      {"five tags", "srtp_unprotected", from(5004).vlan(7).vlan(8).vlan(9).vlan(10).vlan(11).build()},
      // What docs/architecture.md says is not seen.
      {"a tag of 0x9200", "passes", of_type(0x9200, from(5004).vlan(7).build())},
      {"MPLS", "passes", of_type(0x8847, from(5004).vlan(7).build())},
      {"GRE", "passes", PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").protocol(47).payload(100).build()},
      {"UDP-Lite", "passes", PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").protocol(136).payload(rtp(1, 100)).build()},
      {"AH", "passes", PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").protocol(51).payload(100).build()},
      {"options", "srtp_unprotected", from(5004).options({1, 1, 1, 1}).build()},
      {"a first fragment", "srtp_unprotected", from(5004).fragment(0, true).build()},
      {"a later one to whom no stream goes", "srtp_unprotected",
       PacketBuilder().ipv4("10.0.0.1", "10.0.0.9").udp(1, 2).fragment(800, false).payload(80).build()},
      {"DNS", "passes", from(53).build()},
      {"DNS in a VLAN", "passes", from(53).vlan(7).build()},
      {"a client's", "passes", PacketBuilder().ipv4("10.0.0.2", "10.0.0.1").udp(6001, 5005).payload(rtcp()).build()},
      {"TCP", "passes", PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(5004, 6000).payload(100).build()},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(trial.one(one.frame).name(), one.name) << one.what;
    EXPECT_EQ(lets.one(one.frame).frame, one.frame) << one.what;
    EXPECT_EQ(lets.one(one.frame).name(), "passes") << one.what;
    for (const auto transit : {SrtpTrial::How::Transit::before, SrtpTrial::How::Transit::behind}) {
      EXPECT_EQ(trial.one(one.frame, {.transit = transit}).name(), one.name) << one.what;
    }
  }
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 100)).build()).name(), "passes") << "protected";
  EXPECT_EQ(trial.metric("srtp_protected_rtp"), 1U);
}

TEST(Srtp, MediaOfAServerToTheProxyItselfAreTheHosts) {
  SrtpTrial trial(servers + "listen = [\"10.0.0.2\"]\n[[srtp.rtsp.server]]\naddress = \"10.0.0.1\"\n");
  EXPECT_EQ(trial.one(udp_frame(rtp(1, 100), false, 5004, 20000).build()).name(), "passes");
  EXPECT_EQ(trial.metric("srtp_media_to_host"), 1U);
  EXPECT_EQ(trial.one(PacketBuilder().ipv4("10.0.0.1", "10.0.0.3").udp(5004, 20000).payload(rtp(1, 9)).build()).name(),
            "srtp_unprotected");
}

}  // namespace
}  // namespace sluice::function
