// Which frames are RTSP's, what [srtp.rtsp] says, and what the element makes of such frames.
#include "function/srtp/rtsp_flows.h"

#include "function/acl/acl_trial_test.h"
#include "function/srtp/srtp_trial_test.h"

namespace sluice::function {
namespace {

RtspOptions options_of(std::vector<std::string> servers, std::vector<std::uint16_t> ports) {
  RtspOptions options;
  for (const std::string& server : servers) options.servers.push_back(*packet::IpPrefix::parse(server));
  options.ports = std::move(ports);
  return options;
}

PacketBuilder four(const char* source, const char* destination) {
  return PacketBuilder().ipv4(source, destination);
}
PacketBuilder six(const char* source, const char* destination) {
  return PacketBuilder().ipv6(source, destination);
}

TEST(RtspFlows, ByServerAndPort) {
  const RtspFlows flows(options_of({"10.2.0.0/24", "2001:db8:2::/64"}, {554, 8554}));
  const char *server = "10.2.0.7", *client = "10.1.0.2", *server6 = "2001:db8:2::7", *client6 = "2001:db8:1::2";
  const std::tuple<std::string, Bytes, RtspFrame> cases[] = {
      {"to a server", four(client, server).tcp(40000, 554).build(), RtspFrame::rtsp},
      {"its other port", four(client, server).tcp(40000, 8554).payload(300).build(), RtspFrame::rtsp},
      {"from a server", four(server, client).tcp(554, 40000).build(), RtspFrame::rtsp},
      {"between servers", four(server, "10.2.0.8").tcp(554, 40000).build(), RtspFrame::rtsp},
      {"another port", four(client, server).tcp(40000, 80).build(), RtspFrame::none},
      {"the client's port", four(client, server).tcp(554, 40000).build(), RtspFrame::none},
      {"no server", four(client, "10.3.0.7").tcp(40000, 554).build(), RtspFrame::none},
      {"from no server", four("10.3.0.7", client).tcp(554, 40000).build(), RtspFrame::none},
      {"UDP", four(client, server).udp(40000, 554).build(), RtspFrame::none},
      {"a first fragment", four(client, server).tcp(40000, 554).fragment(0, true).build(), RtspFrame::fragment},
      {"a later fragment", four(server, client).tcp(9, 9).fragment(100, false).build(), RtspFrame::fragment},
      {"another's fragment", four(client, "10.3.0.7").tcp(9, 9).fragment(100, false).build(), RtspFrame::none},
      {"a fragment of UDP", four(client, server).udp(9, 9).fragment(100, false).build(), RtspFrame::none},
      {"to a server, IPv6", six(client6, server6).tcp(40000, 554).build(), RtspFrame::rtsp},
      {"from a server, IPv6", six(server6, client6).tcp(8554, 40000).build(), RtspFrame::rtsp},
      {"another port, IPv6", six(client6, server6).tcp(40000, 80).build(), RtspFrame::none},
      {"no server, IPv6", six(client6, "2001:db8:3::7").tcp(40000, 554).build(), RtspFrame::none},
      {"UDP, IPv6", six(client6, server6).udp(40000, 554).build(), RtspFrame::none},
      {"behind options", four(client, server).options({1, 1, 1, 1}).tcp(40000, 554).build(), RtspFrame::rtsp},
      {"behind an extension header", six(client6, server6).extension(60, {1}).tcp(40000, 554).build(), RtspFrame::rtsp},
      {"behind two", six(server6, client6).extension(0, {1}).extension(60, {1}).tcp(554, 9).build(), RtspFrame::rtsp},
      {"an atomic fragment", six(client6, server6).fragment(0, false).tcp(40000, 554).build(), RtspFrame::rtsp},
      {"a first fragment, IPv6", six(client6, server6).fragment(0, true).tcp(9, 554).build(), RtspFrame::fragment},
      {"a later one", six(client6, server6).fragment(64, false).tcp(9, 554).payload(8).build(), RtspFrame::fragment},
      {"behind an extension header, a fragment",
       six(client6, server6).extension(60, {1}).fragment(64, false).tcp(9, 554).payload(8).build(),
       RtspFrame::fragment},
      {"a fragment of UDP, IPv6", six(client6, server6).fragment(64, false).udp(9, 554).build(), RtspFrame::none},
      {"in a VLAN", four(client, server).vlan(7).tcp(40000, 554).build(), RtspFrame::none},
      {"ARP", PacketBuilder().arp_request(client, server).build(), RtspFrame::none},
  };
  for (const auto& [name, frame, expected] : cases) {
    EXPECT_EQ(flows.look_at(frame.data(), static_cast<std::uint32_t>(frame.size())), expected) << name;
    for (std::size_t length = 0; length < frame.size(); ++length) {
      const Bytes cut(frame.begin(), frame.begin() + static_cast<long>(length));  // for the sanitizers
      const RtspFrame seen = flows.look_at(cut.data(), static_cast<std::uint32_t>(length));
      EXPECT_TRUE(seen == expected || seen == RtspFrame::none) << name << length;
    }
  }
}

TEST(RtspFlows, OfTheExplicitMode) {
  RtspOptions options = options_of({"10.2.0.7/32"}, {554});
  for (const char* address : {"10.2.0.7", "10.2.0.80", "2001:db8:2::80"}) {
    options.upstream.push_back({.address = *packet::IpAddress::parse(address), .port = 8554, .name = {}, .path = {}});
  }
  const RtspFlows flows(options);
  options.drops_unprotected = false;
  const RtspFlows lets(options);
  const char *server = "10.2.0.80", *client = "10.1.0.2", *both = "10.2.0.7";
  const std::tuple<std::string, Bytes, RtspFrame, RtspFrame> cases[] = {
      {"to a server", four(client, server).tcp(40000, 8554).build(), RtspFrame::past, RtspFrame::none},
      {"at one of ports", four(client, server).tcp(40000, 554).build(), RtspFrame::past, RtspFrame::none},
      {"from a server", four(server, "10.2.0.1").tcp(8554, 40000).build(), RtspFrame::rtsp, RtspFrame::none},
      {"another port", four(client, server).tcp(40000, 80).build(), RtspFrame::none, RtspFrame::none},
      {"another host", four(client, "10.2.0.81").tcp(40000, 8554).build(), RtspFrame::none, RtspFrame::none},
      {"IPv6", six("2001:db8:1::2", "2001:db8:2::80").tcp(40000, 8554).build(), RtspFrame::past, RtspFrame::none},
      {"a fragment", four(client, server).tcp(1, 2).fragment(64, false).build(), RtspFrame::fragment, RtspFrame::none},
      {"of both modes", four(client, both).tcp(40000, 554).build(), RtspFrame::rtsp, RtspFrame::rtsp},
      {"of both, its other port", four(client, both).tcp(40000, 8554).build(), RtspFrame::past, RtspFrame::none},
  };
  for (const auto& [name, frame, expected, let] : cases) {
    EXPECT_EQ(flows.look_at(frame.data(), static_cast<std::uint32_t>(frame.size())), expected) << name;
    EXPECT_EQ(lets.look_at(frame.data(), static_cast<std::uint32_t>(frame.size())), let) << name;
  }
}

const std::string section = "[srtp.rtsp]\nservers = [\"10.0.0.2/32\"]\nports = [554]\n";

std::vector<std::string> mistakes_of(const std::string& text, bool twins = true) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  engine::PortTable ports(
      {{.name = "lan", .mac = {}, .has_twin = true}, {.name = "wan", .mac = {}, .has_twin = twins}});
  Settings srtp = file->section("srtp");
  (void)engine::find_element("srtp")->make(srtp, ports);
  srtp.finish();
  return diagnostics.lines;
}

TEST(RtspSettings, MistakesNameTheLine) {
  const std::string server = "[[srtp.rtsp.server]]\naddress = \"10.0.0.2\"\n";
  const std::string explicit_section = "[srtp.rtsp]\nlisten = [\"10.0.0.1\"]\n" + server;
  const std::string second = "[[srtp.rtsp.server]]\naddress = \"10.0.0.7\"\n";
  const auto ranged = [&](const std::string& range) {
    return "[srtp.rtsp]\nlisten = [\"10.0.0.1\"]\nmedia_ports = \"" + range + "\"\n" + server;
  };
  EXPECT_EQ(mistakes_of(section), std::vector<std::string>());
  EXPECT_EQ(mistakes_of(explicit_section), std::vector<std::string>());
  EXPECT_EQ(mistakes_of(explicit_section + "path = \"/a\"\n" + second), std::vector<std::string>());
  EXPECT_EQ(mistakes_of(explicit_section + "path = \"/a\"\n" + second + "path = \"/ab\"\n"),
            std::vector<std::string>());
  EXPECT_EQ(mistakes_of(explicit_section + "name = \"a\"\n" + second + "name = \"b\"\n"), std::vector<std::string>());
  EXPECT_EQ(mistakes_of(section + "max_rate = 1000\ndefault_rate = 1000\n"), std::vector<std::string>());
  EXPECT_EQ(mistakes_of(section + "default_rate = 1000\n"), std::vector<std::string>()) << "there is no limit";
  EXPECT_EQ(mistakes_of(section + "answer_timeout = \"1s\"\nidle_timeout = \"86400s\"\n"), std::vector<std::string>());
  EXPECT_EQ(mistakes_of("[srtp.rtsp]\nlisten = [\"10.0.0.1\"]\nunprotected = \"pass\"\n" + server),
            std::vector<std::string>());
  EXPECT_EQ(mistakes_of(ranged("1024-65535")), std::vector<std::string>());
  EXPECT_EQ(mistakes_of("[srtp.rtsp]\nservers = [\"::/0\"]\nunprotected = \"pass\"\n"), std::vector<std::string>());
  const std::pair<std::string, std::string> cases[] = {
      {"[srtp.rtsp]\n", "servers: is missing"},
      {"[srtp.rtsp]\nservers = [\"10.0.0.1/24\"]\n", "a.toml:2: [srtp.rtsp] servers: "},
      {"[srtp.rtsp]\nservers = [\"::ffff:10.2.0.0/120\"]\n",
       "servers: ::ffff:10.2.0.0/120 is IPv4 in IPv6's form, which no packet has: write 10.2.0.0/24"},
      {"[srtp.rtsp]\nservers = [\"10.2.0.0/24\", \"10.2.0.0/24\"]\n", "servers: 10.2.0.0/24 is there twice"},
      {"[srtp.rtsp]\nservers = [\"0.0.0.0/0\"]\n", "servers: 0.0.0.0/0 has the clients in it, too"},
      {section + "unprotected = \"no\"\n", "unprotected: allowed is \"drop\", \"pass\""},
      {section + "suite = \"AES\"\n", "suite: suites are AES_CM_128_HMAC_SHA1_80, "},
      {section + "max_connections = 0\n", "max_connections: "},
      {section + "max_ssrcs = 0\n", "max_ssrcs: allowed is "},
      {section + "max_ssrcs = 65537\n", "max_ssrcs: allowed is "},
      {section + "measured = true\n", "measured: there is no default_rate: say what media without b= may bring"},
      {section + "default_rate = 5\nmeasure_time = \"1s\"\n", "measure_time: is for media that are measured"},
      {section + "default_rate = 5\nmeasured = 1\n", "measured: allowed is true or false"},
      {section + "max_connections = 8\nmax_connections_per_client = 9\n", "max_connections_per_client: allowed is "},
      {section + "idle_timeout = \"5\"\n", "idle_timeout: "},
      {section + "answer_timeout = 5\n", "answer_timeout: "},
      {section + "answer_timeout = \"1ms\"\n", "a.toml:4: [srtp.rtsp] answer_timeout: allowed is \"1s\" to \"86400s\""},
      {section + "answer_timeout = \"86401s\"\n", "answer_timeout: allowed is "},
      {section + "session_timeout = \"999ms\"\n", "session_timeout: allowed is "},
      {section + "connect_timeout = \"999ms\"\n", "connect_timeout: allowed is "},
      {section + "idle_timeout = \"10us\"\n", "idle_timeout: allowed is "},
      {section + "max_rate = 1000\ndefault_rate = 1001\n",
       "a.toml:5: [srtp.rtsp] default_rate: exceeds max_rate, 1000: "},
      {section + "table = 254\n", "table: "},
      {section + "tabel = 1554\n", "tabel: unknown key"},
      {"[srtp.rtsp]\nservers = [\"10.0.0.2\"]\nports = [0]\n", "ports: allowed are TCP ports"},
      {"[srtp.rtsp]\nservers = [\"10.0.0.2\"]\nports = [554, 554]\n", "ports: 554 is there twice"},
      {section + "media_ports = \"20000-20001\"\n", "media_ports: is for clients that address the proxy itself"},
      {section + server, "listen: is missing"},
      {"[srtp.rtsp]\nlisten = [\"10.0.0.1\"]\n", "no [[srtp.rtsp.server]] has an address of the family of 10.0.0.1"},
      {"[srtp.rtsp]\nlisten = [\"2001:db8::1\"]\n" + server, "of the family of 2001:db8::1"},
      {"[srtp.rtsp]\nlisten = [\"10.0.0.1\", \"10.0.0.1\"]\n" + server, "listen: 10.0.0.1 is there twice"},
      {"[srtp.rtsp]\nlisten = [\"proxy\"]\n" + server, "a.toml:2: [srtp.rtsp] listen: "},
      {"[srtp.rtsp]\nlisten = [\"0.0.0.0\"]\n" + server,
       "a.toml:2: [srtp.rtsp] listen: 0.0.0.0 is no host's: give the address that its packets have"},
      {"[srtp.rtsp]\nlisten = [\"239.1.1.1\"]\n" + server,
       "listen: 239.1.1.1 is of many hosts, and none answers there: give an address of one host"},
      {"[srtp.rtsp]\nlisten = [\"255.255.255.255\"]\n" + server, "listen: 255.255.255.255 is of many hosts"},
      {"[srtp.rtsp]\nlisten = [\"::1\"]\n" + server, "listen: ::1 never leaves its host: "},
      {"[srtp.rtsp]\nlisten = [\"10.0.0.1\"]\n[[srtp.rtsp.server]]\naddress = \"224.0.0.9\"\n",
       "a.toml:4: [[srtp.rtsp.server]] address: 224.0.0.9 is of many hosts"},
      {explicit_section + "[[srtp.rtsp.server]]\naddress = \"::\"\n", "address: :: is no host's"},
      {"[srtp.rtsp]\nservers = [\"ff00::/8\"]\n", "servers: ff00::/8 is of many hosts"},
      {"[srtp.rtsp]\nservers = [\"127.0.0.0/8\"]\n", "servers: 127.0.0.0/8 never leaves its host"},
      {"[srtp.rtsp]\nservers = [\"0.0.0.0\"]\n", "servers: 0.0.0.0/32 is no host's"},
      {"[srtp.rtsp]\nlisten = [\"10.0.0.2\"]\n" + server, "10.0.0.2 is the proxy's own address"},
      {explicit_section + "[[srtp.rtsp.server]]\nport = 554\n", "a.toml:5: [[srtp.rtsp.server]] address: is missing"},
      {explicit_section + second,
       "a.toml:6: [[srtp.rtsp.server]] address: 10.0.0.7 gets no connection: the server 10.0.0.2"},
      {explicit_section + "path = \"/a\"\n" + second + "path = \"/a/b\"\n", "10.0.0.7 gets no connection"},
      {explicit_section + "name = \"A.example\"\n" + second + "name = \"a.example\"\npath = \"/a\"\n",
       "10.0.0.7 gets no connection"},
      {explicit_section + "path = \"film\"\n", "path: give what paths begin with"},
      {explicit_section + "port = 0\n", "port: "},
      {explicit_section + "nmae = \"a\"\n", "nmae: unknown key"},
      {ranged("20001-20010"), "media_ports: give a range"},
      {ranged("20000"), "media_ports: give a range"},
      {ranged("20000-20000"), "media_ports: give a range"},
      {ranged("20000-70000"), "media_ports: give a range"},
      {ranged("22-30"), "media_ports: give a range"},
      {ranged("20000-20010x"), "media_ports: give a range"},
  };
  for (const auto& [text, message] : cases) {
    std::string all;
    for (const std::string& line : mistakes_of(text)) all += line + "\n";
    EXPECT_NE(all.find(message), std::string::npos) << text << all;
  }
  ASSERT_EQ(mistakes_of(section, false).size(), 1U);
  EXPECT_NE(mistakes_of(section, false)[0].find("'wan' has none"), std::string::npos);
}

std::unique_ptr<engine::Element> stage_of(const std::string& text) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  Settings srtp = file->section("srtp");
  auto stage = engine::find_element("srtp")->make(srtp, engine::PortTable(std::vector<engine::PortInfo>{}));
  EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
  return std::move(*stage);
}

// Without twins they have no way to the host, which is counted under that name.
TEST(Srtp, HandsRtspToTheHost) {
  AclTrial trial("cpu");
  const Bytes other = four("10.0.0.1", "10.0.0.2").tcp(40000, 80).build();
  const Outcome out = trial.run({four("10.0.0.1", "10.0.0.2").tcp(40000, 554).build(), other,
                                 four("10.0.0.2", "10.0.0.1").tcp(554, 40000).build(),
                                 four("10.0.0.2", "10.0.0.1").tcp(1, 2).fragment(64, false).build()},
                                stage_of(section));
  EXPECT_EQ(out.sent, std::vector<Bytes>{other});
  EXPECT_EQ(out.metrics.at("srtp_to_rtsp_proxy"), 2U);
  EXPECT_EQ(out.stats.drops[srtp_rtsp_fragment], 1U);
  std::uint64_t dropped = 0;
  for (unsigned reason = 0; reason < packet::max_reasons; ++reason) dropped += out.stats.drops[reason];
  EXPECT_EQ(dropped + out.stats.total.punted, 3U);
}

// What an element in front drops stays dropped, and one behind may drop what is left to the host.
TEST(Srtp, RtspThatAnotherElementDropsGoesNowhere) {
  SrtpTrial trial(section);
  const Bytes rtsp = four("10.0.0.1", "10.0.0.2").tcp(40000, 554).build();
  EXPECT_EQ(trial.one(rtsp).fate, engine::Fate::to_host);
  EXPECT_EQ(trial.one(rtsp).reason, packet::no_reason) << "nothing else becomes of it";
  EXPECT_EQ(trial.one(rtsp, {.skipped = 0}).fate, engine::Fate::dropped);
  EXPECT_EQ(trial.one(four("10.0.0.1", "10.0.0.2").tcp(40000, 555).build()).fate, engine::Fate::goes_on);
}

TEST(Srtp, ReloadDoesNotChangeTheProxy) {
  SrtpTrial trial(section);
  const auto same = stage_of(section), other = stage_of(section + "max_streams = 5\nidle_timeout = \"9s\"\n"),
             none = stage_of("");
  EXPECT_TRUE(trial.element().reload(*same));
  const auto changed = trial.element().reload(*other), gone = trial.element().reload(*none);
  ASSERT_FALSE(changed);
  const std::string why = " cannot change while the gateway runs: restart it";
  EXPECT_EQ(changed.error().message, "[srtp.rtsp] max_streams" + why + "\n[srtp.rtsp] idle_timeout" + why);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().message, "[srtp.rtsp] cannot come or go while the gateway runs: restart it");
}

}  // namespace
}  // namespace sluice::function
