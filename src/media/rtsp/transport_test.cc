#include "media/rtsp/transport.h"

#include <gtest/gtest.h>

#include "media/rtsp/uri.h"

namespace sluice::media::rtsp {
namespace {

TEST(Transport, IsWrittenAsItWasRead) {
  for (const std::string_view text : {
           "RTP/AVP/UDP;unicast;client_port=12322-12323",  // ffmpeg
           "RTP/SAVP;unicast;client_port=54374-54375",     // rtspsrc
           "RTP/AVP;unicast;client_port=1-2;server_port=3-4;ssrc=FDA30065;mode=\"PLAY\"",
           "RTP/AVP/TCP;unicast;interleaved=0-1,RTP/AVP;unicast;client_port=8-9",
           "RTP/AVP/UDP;multicast;ttl=127;destination=224.2.0.1;port=1-2;layers=2",
           "RTP/AVP/UDP;unicast;dest_addr=\":8000\"/\":8001\";src_addr=\"a;b,c\"",
       }) {
    const auto transports = parse_transports(text);
    ASSERT_TRUE(transports) << text << ": " << transports.error().message;
    EXPECT_EQ(transports_text(*transports), text);
  }
  EXPECT_EQ(transports_text(*parse_transports(" RTP/AVP ; unicast ;; a = b ; , X/Y;")), "RTP/AVP;unicast;a=b,X/Y");
  const std::pair<std::string_view, std::string_view> odd[] = {
      {"RTP/AVP,,RTP/AVP,", "RTP/AVP,RTP/AVP"},
      {"RTP AVP,RTP/AVP", "RTP/AVP"},
      {"RTP/AVP;=1,RTP/AVP", "RTP/AVP,RTP/AVP"},
      {"RTP/AVP;client_port=1-2;x;Client_port=3-4", "RTP/AVP;x;Client_port=3-4"},
      {"RTP/AVP;mode=\"PLAY;server_port=1-2,RTP/AVP", "RTP/AVP;mode=PLAY;server_port=1-2,RTP/AVP"},
  };
  for (const auto& [text, written] : odd) {
    const auto transports = parse_transports(text);
    ASSERT_TRUE(transports) << text << ": " << transports.error().message;
    EXPECT_EQ(transports_text(*transports), written);
  }
}

TEST(Transport, ItsParts) {
  const auto all = parse_transports(
      "rtp/savpf/udp;UNICAST;Client_Port=65535-1;server_port=7;ssrc=00FDA300;mode=Play;source=\"1.2.3.4\","
      "RTP/AVP/TCP;interleaved=0-1;mode=\"RECORD\",RTP/AVP,MP2T/H2221/UDP");
  ASSERT_TRUE(all) << all.error().message;
  const Transport& first = all->at(0);
  EXPECT_EQ(first.profile(), sdp::Profile::savpf);
  EXPECT_TRUE(first.udp());
  EXPECT_FALSE(first.tcp());
  EXPECT_TRUE(first.unicast());
  EXPECT_EQ(first.ports("client_port"), (PortPair{65535, 1}));
  EXPECT_EQ(first.ports("server_port"), (PortPair{7, 8}));
  EXPECT_EQ(first.ssrc(), 0xfda300U);
  EXPECT_EQ(first.value("source"), "1.2.3.4");
  EXPECT_TRUE(first.plays());
  EXPECT_TRUE(all->at(1).tcp());
  EXPECT_FALSE(all->at(1).udp());
  EXPECT_FALSE(all->at(1).plays());
  EXPECT_TRUE(all->at(2).udp());
  EXPECT_EQ(all->at(2).profile(), sdp::Profile::avp);
  EXPECT_EQ(all->at(3).profile(), sdp::Profile::other);
}

TEST(Transport, Ports) {
  for (const auto& [text, ports] : std::initializer_list<std::pair<std::string, std::optional<PortPair>>>{
           {"5000-5001", PortPair{5000, 5001}},
           {"5000", PortPair{5000, 5001}},
           {"65534", PortPair{65534, 65535}},
           {"65535", std::nullopt},
           {"0-1", std::nullopt},
           {"1-0", std::nullopt},
           {"1-", PortPair{1, 2}},
           {"1 - 3", PortPair{1, 3}},
           {"\"1-3\"", PortPair{1, 3}},
           {"-1", std::nullopt},
           {"1-65536", std::nullopt},
           {"a-b", std::nullopt},
           {"", std::nullopt},
       }) {
    EXPECT_EQ(parse_transports("RTP/AVP;client_port=" + text)->at(0).ports("client_port"), ports) << text;
  }
}

TEST(Transport, PortsOfOddServers) {
  for (const auto& [text, ports] : std::initializer_list<std::pair<std::string, std::optional<PortPair>>>{
           {"5000-5003", PortPair{5000, 5003}},
           {"5000/2", PortPair{5000, 5001}},
           {"5000-0", PortPair{5000, 5001}},
           {"5000--1", PortPair{5000, 5001}},
           {"5000-70000", PortPair{5000, 5001}},
           {"5000 - 5003-7", PortPair{5000, 5003}},
           {"5000x", PortPair{5000, 5001}},
           {"65535-1", PortPair{65535, 1}},
           {"65535-0", std::nullopt},
           {"70000-70001", std::nullopt},
           {"-1", std::nullopt},
           {"x5000", std::nullopt},
           {"", std::nullopt},
       }) {
    EXPECT_EQ(parse_transports("RTP/AVP;server_port=" + text)->at(0).ports_in("server_port"), ports) << text;
  }
}

TEST(Transport, CommasBetweenParameters) {
  for (const auto& [text, written] : std::initializer_list<std::pair<std::string, std::string>>{
           {"RTP/AVP,unicast,client_port=1-2", "RTP/AVP;unicast;client_port=1-2"},
           {"RTP/AVP;unicast, client_port=1-2;server_port=3/4,", "RTP/AVP;unicast;client_port=1-2;server_port=3/4"},
           {"RTP/AVP;ssrc=1,;unicast;=;=x", "RTP/AVP;ssrc=1;unicast"},
           {"RTP/AVP;ttl=1,RTP/AVP/TCP,unicast,ttl=2", "RTP/AVP;ttl=1,RTP/AVP/TCP;unicast;ttl=2"},
           {"RTP AVP/,unicast,RTP/AVP;ttl=1", "RTP/AVP;ttl=1"},
       }) {
    EXPECT_EQ(transports_text(*parse_transports(text)), written);
  }
}

TEST(Transport, Changes) {
  auto transports = *parse_transports("RTP/AVP/UDP;unicast;client_port=1-2;mode=\"PLAY\"");
  Transport& transport = transports[0];
  transport.set_profile(sdp::Profile::savp);
  transport.set_ports("CLIENT_PORT", {3, 4});
  transport.set("source", "10.0.0.1");
  EXPECT_TRUE(transport.remove("unicast"));
  EXPECT_FALSE(transport.remove("unicast"));
  EXPECT_EQ(transports_text(transports), "RTP/SAVP/UDP;client_port=3-4;mode=\"PLAY\";source=10.0.0.1");
}

TEST(Transport, IsRefused) {
  std::string many = "RTP/AVP";
  std::string long_one = "RTP/AVP";
  for (unsigned i = 0; i < 33; ++i) {
    many += ",RTP/AVP";
    long_one += ";a" + std::to_string(i);
  }
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "empty"},
      {",", "empty"},
      {"RTP AVP", "no protocol"},
      {"client_port=1", "no protocol"},
      {many, "more than 16 alternatives"},
      {long_one, "more than 32 parameters"},
  };
  for (const auto& [text, part] : cases) {
    const auto transports = parse_transports(text);
    ASSERT_FALSE(transports) << text;
    EXPECT_NE(transports.error().message.find(part), std::string::npos) << transports.error().message;
  }
}

TEST(Uri, Controls) {
  struct Case {
    std::string_view base, control, uri, resolved;
  };
  for (const Case& one : {
           Case{"rtsp://h/a/", "track1", "rtsp://h/a/track1", "rtsp://h/a/track1"},
           Case{"rtsp://h/a", "track1", "rtsp://h/a/track1", "rtsp://h/track1"},
           Case{"rtsp://h", "track1", "rtsp://h/track1", "rtsp://h/track1"},
           Case{"rtsp://h/a", "rtsp://g/b", "rtsp://g/b", "rtsp://g/b"},
           Case{"rtsp://h/a", "*", "rtsp://h/a", "rtsp://h/a"},
           Case{"rtsp://h/a", "", "rtsp://h/a", "rtsp://h/a"},
           Case{"rtsp://h/a/", "/b", "rtsp://h/a/b", "rtsp://h/b"},
           Case{"rtsp://h/a?x=1/2", "t", "rtsp://h/a?x=1/2/t", "rtsp://h/t"},
       }) {
    EXPECT_EQ(control_uri(one.base, one.control), one.uri) << one.base << ' ' << one.control;
    EXPECT_EQ(resolved_uri(one.base, one.control), one.resolved) << one.base << ' ' << one.control;
  }
}

TEST(Uri, SameResource) {
  EXPECT_TRUE(same_resource("rtsp://h/a", "rtsp://10.0.0.1:554/a/"));
  EXPECT_TRUE(same_resource("rtsp://h", "rtsp://h/"));
  EXPECT_TRUE(same_resource("/a", "rtsp://h/a"));
  EXPECT_FALSE(same_resource("rtsp://h/a", "rtsp://h/b"));
  EXPECT_FALSE(same_resource("rtsp://h/a?x=1", "rtsp://h/a"));
  EXPECT_FALSE(same_resource("rtsp://h/a", "rtsp://h/a//"));
}

TEST(Uri, AlikeResource) {
  EXPECT_TRUE(alike_resource("rtsp://h/a/track=1", "rtsp://g/a/track%3D1"));
  EXPECT_TRUE(alike_resource("rtsp://h/a//b/", "rtsp://h/a/b"));
  EXPECT_TRUE(alike_resource("rtsp://h/a/../b/./c?x=%3d", "rtsp://h/b/c?x=="));
  EXPECT_TRUE(alike_resource("rtsp://h/../../a", "/a"));
  EXPECT_TRUE(
      alike_resource("rtsp://h/tr\xc3\xa4"
                     "ck",
                     "rtsp://h/tr%C3%A4ck"));
  EXPECT_TRUE(alike_resource("rtsp://h/%zz%4", "rtsp://h/%zz%4"));
  EXPECT_FALSE(alike_resource("rtsp://h/a/1", "rtsp://h/a/2"));
  EXPECT_FALSE(alike_resource("rtsp://h/a?x=1", "rtsp://h/a"));
}

TEST(Uri, Authority) {
  EXPECT_EQ(with_authority("rtsp://Proxy:8554/a?b", "proxy:8554", "s:554"), "rtsp://s:554/a?b");
  EXPECT_EQ(with_authority("rtsp://me:pw@proxy:8554/a", "proxy:8554", "s"), "rtsp://me:pw@s/a");
  EXPECT_EQ(with_authority("rtsp://[2001:db8::1]:8554", "[2001:db8::1]:8554", "[2001:db8::2]"), "rtsp://[2001:db8::2]");
  EXPECT_EQ(with_authority("rtsp://other/a", "proxy:8554", "s"), "rtsp://other/a");
  EXPECT_EQ(with_authority("*", "proxy", "s"), "*");
  EXPECT_EQ(with_authority("/a", "", "s"), "/a");
  EXPECT_EQ(with_authority("rtsp://proxy/a", "proxy:554", "s:8554"), "rtsp://s:8554/a");
  EXPECT_EQ(with_authority("rtsp://[2001:DB8:0::1]/a", "[2001:db8::1]:554", "[2001:db8::2]:1"),
            "rtsp://[2001:db8::2]:1/a");
  EXPECT_EQ(to_authority("rtsp://whoever:99/a?b", "s:554"), "rtsp://s:554/a?b");
  EXPECT_EQ(to_authority("rtsp://me:pw@whoever/a", "s:554"), "rtsp://me:pw@s:554/a");
  EXPECT_EQ(to_authority("rtsp://[2001:db8::1]", "s"), "rtsp://s");
  EXPECT_EQ(to_authority("*", "s"), "*");
  EXPECT_EQ(to_authority("/a", "s"), "/a");
}

TEST(Uri, WithoutUsers) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", ""},
      {"rtsp://h/a", "rtsp://h/a"},
      {"rtsp://me:pw@h:554/a@b?c@d", "rtsp://h:554/a@b?c@d"},
      {"rtsp://me@h", "rtsp://h"},
      {"rtsp://me:p@w@[2001:db8::1]/", "rtsp://[2001:db8::1]/"},
      {"//me:pw@h", "//h"},
      {"rtsp://me:pw@", "rtsp://"},
      {"///me:pw@h", "///me:pw@h"},
      {"no_offer \"rtsp://me:pw@h/a\": rtsp://you:pw@g, rtsp://x b@c",
       "no_offer \"rtsp://h/a\": rtsp://g, rtsp://x b@c"},
      {"a@b", "a@b"},
      {"rtsp://me:a/b@h/c", "rtsp://h/c"},
      {"rtsp://me:a?b@h/c", "rtsp://h/c"},
      {"rtsp://[2001:db8::1]/a@b", "rtsp://[2001:db8::1]/a@b"},
      {"rtsp://h/x?user=a&password=pw&c=1", "rtsp://h/x?user=a&password=***&c=1"},
      {"rtsp://h/user=a&User_Passwd=pw", "rtsp://h/user=a&User_Passwd=***"},
      {"rtsp://h/x?passwd2=pw&pass-word=pw;pw=pw&PSW=pw", "rtsp://h/x?passwd2=***&pass-word=***;pw=***&PSW=***"},
      {"rtsp://h/x?auth=pw&p%61ss=pw&token=pw&pwm=1", "rtsp://h/x?auth=***&p%61ss=***&token=***&pwm=1"},
      {"rtsp://h/x?pwd=&compass=n", "rtsp://h/x?pwd=&compass=***"},
      {"rtsp://h/x?channel=1&p=2", "rtsp://h/x?channel=1&p=2"},
  };
  for (const auto& [text, shown] : cases) {
    EXPECT_EQ(without_users(text), shown) << text;
  }
}

TEST(Uri, SameAuthority) {
  EXPECT_EQ(authority_of("rtsp://me:pw@h:1/a"), "h:1");
  EXPECT_EQ(authority_of("/a"), "");
  const std::tuple<const char*, const char*, bool> cases[] = {
      {"h", "h:554", true},
      {"h:", "h", true},
      {"H.example:8554", "h.EXAMPLE:8554", true},
      {"h", "h:8554", false},
      {"h", "g", false},
      {"[2001:db8::1]", "[2001:db8:0:0::1]:554", true},
      {"[2001:db8::1]:1", "[2001:db8::1]", false},
      {"[2001:db8::1]", "[2001:db8::2]", false},
      {"10.0.0.1", "10.0.0.1:554", true},
      {"", "", false},
      {":554", "", false},
  };
  for (const auto& [a, b, same] : cases) {
    EXPECT_EQ(same_authority(a, b), same) << a << ' ' << b;
    EXPECT_EQ(same_authority(b, a), same) << b << ' ' << a;
  }
}

}  // namespace
}  // namespace sluice::media::rtsp
