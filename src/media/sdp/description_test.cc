#include "media/sdp/description.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::media::sdp {
namespace {

constexpr std::string_view session = "v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=x\r\n";

Description parsed(std::string_view text, const Limits& limits = {}) {
  auto description = Description::parse(text, limits);
  EXPECT_TRUE(description) << description.error().message;
  return description ? *description : Description{};
}

TEST(Description, KeepsEveryByte) {
  for (const std::string_view text : {
           "v=0\r\no=- 1 1 IN IP4 1.2.3.4\r\ns= \r\nm=video 0 RTP/AVP 96\r\na=x\r\n",
           "v=0\no=x\nm=video 0 RTP/AVP 96\na=no end",
           "v=0\r\ns= a \nz=unknown line\r\nm=audio 5004/2 RTP/AVP 0 8\r\n",
           "m=audio 0 RTP/AVP\r\nb=\r\n",
           "v=0",
           "v=0\r\n",
           "v=0\r\nk=\xff\xfe\r\n",
       }) {
    EXPECT_EQ(parsed(text).text().view(), text);
  }
}

TEST(Description, TakesMediaApart) {
  const Description description = parsed(
      "v=0\r\na=control:*\r\nc=IN IP4 10.0.0.1\r\nm=video 49170/2 RTP/AVP 96 97\r\nc=IN IP6 ff15::101/3\r\n"
      "a=ssrc:7 cname:a\r\na=ssrc:7 label:b\r\na=ssrc:4294967295 cname:a\r\na=ssrc:x\r\na=recvonly\r\na=control:1\r\n"
      "m=audio 0 RTP/SAVPF 8\r\nc=IN IP4 a.name\r\n");
  ASSERT_EQ(description.media.size(), 2U);
  const Medium& video = description.media[0];
  EXPECT_EQ(video.kind(), "video");
  EXPECT_EQ(video.port(), 49170);
  EXPECT_EQ(video.port_count(), 2);
  EXPECT_EQ(video.protocol(), "RTP/AVP");
  EXPECT_EQ(video.formats(), "96 97");
  EXPECT_EQ(video.profile(), Profile::avp);
  EXPECT_EQ(video.connection()->str(), "ff15::101");
  EXPECT_EQ(video.ssrcs(), (std::vector<std::uint32_t>{7, 4294967295}));
  EXPECT_EQ(video.attribute("recvonly"), "");
  EXPECT_EQ(video.attribute("control"), "1");
  EXPECT_FALSE(video.attribute("contro"));
  EXPECT_EQ(video.attributes("ssrc").size(), 4U);
  EXPECT_EQ(description.media[1].profile(), Profile::savpf);
  EXPECT_EQ(description.media[1].port_count(), 1);
  EXPECT_FALSE(description.media[1].connection());
  EXPECT_EQ(description.session.attribute("control"), "*");
  EXPECT_EQ(description.session.connection()->str(), "10.0.0.1");
}

TEST(Description, Changes) {
  Description description = parsed("v=0\nm=video 0/2 RTP/AVP 96\na=crypto:1 x\na=b\na=crypto:2 y\na=cryptograph:3");
  Medium& medium = description.media[0];
  EXPECT_EQ(medium.remove_attributes("crypto"), 2U);
  medium.set_protocol("RTP/SAVP");
  medium.add_attribute("key-mgmt", "mikey AA==");
  EXPECT_EQ(description.text().view(), "v=0\nm=video 0/2 RTP/SAVP 96\na=b\na=cryptograph:3\na=key-mgmt:mikey AA==\n");
}

TEST(Description, Profiles) {
  EXPECT_EQ(secured(Profile::avp), Profile::savp);
  EXPECT_EQ(secured(Profile::avpf), Profile::savpf);
  EXPECT_EQ(secured(Profile::other), Profile::other);
  EXPECT_EQ(plain(Profile::savpf), Profile::avpf);
  EXPECT_EQ(plain(Profile::avp), Profile::avp);
  EXPECT_EQ(profile_named("rtp/savp"), Profile::savp);
  EXPECT_EQ(profile_named("TCP/RTP/AVP"), Profile::other);
  EXPECT_EQ(profile_name(Profile::avpf), "RTP/AVPF");
}

TEST(Description, Rates) {
  struct Case {
    std::string_view session_lines, media_lines;
    bool ipv6;
    std::optional<std::uint64_t> rate;
  };
  for (const Case& one : {
           Case{"", "", false, std::nullopt},
           Case{"", "b=AS:2097\r\n", false, 2'097'000},
           Case{"b=AS:5000\r\n", "", false, 5'000'000},
           Case{"b=AS:5000\r\n", "b=AS:100\r\n", false, 100'000},
           Case{"", "b=TIAS:64000\r\n", false, 64'000},
           Case{"", "b=TIAS:64000\r\na=maxprate:50.0\r\n", false, 80'000},
           Case{"", "b=TIAS:64000\r\na=maxprate:50\r\n", true, 88'000},
           Case{"", "b=TIAS:64000\r\na=maxprate:0.5\r\n", false, 64'160},
           Case{"", "b=AS:100\r\nb=TIAS:64000\r\n", false, 100'000},
           Case{"", "b=X:100\r\nb=AS:-1\r\n", false, std::nullopt},
           Case{"", "b=AS:99999999999999999999\r\n", false, std::nullopt},
       }) {
    const Description description = parsed(std::string(session).append(one.session_lines) + "m=audio 0 RTP/AVP 0\r\n" +
                                           std::string(one.media_lines));
    EXPECT_EQ(description.rate(description.media.at(0), one.ipv6), one.rate) << one.session_lines << one.media_lines;
  }
}

// What liberal readers take for a line is written so that all do.
TEST(Description, OddLinesAreWrittenInOneWay) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"\xEF\xBB\xBFv=0\r\n", "v=0\r\n"},
      {std::string("v=0\r\na=b\r\n\0\0", 12), "v=0\r\na=b\r\n"},
      {std::string("v=0\r\na=b\0c\r\nm=audio 0 RTP/AVP 0\r\n", 33), "v=0\r\na=b"},
      {"\r\n\n v=0 \r\n \t\r\na=b\r\r\n", "v=0\r\na=b\r\n"},
      {"v=0\rs=a \rm=audio 0 RTP/AVP 0\r", "v=0\r\ns=a \r\nm=audio 0 RTP/AVP 0\r\n"},
      {"V = 0\nC =\tIN IP4 1.2.3.4\n", "v=0\nc=IN IP4 1.2.3.4\n"},
      {"v=0\na = control : t 1 \na=Control:x\na=control\n", "v=0\na=control:t 1\na=control:x\na=control\n"},
      {"m=audio 0 RTP/AVP 0\n", "m=audio 0 RTP/AVP 0\n"},
      {"v=1\nm =video\t1  RTP/AVP   96\t97 \n", "v=1\nm=video 1 RTP/AVP 96 97\n"},
      {" M=video 65536 rtp/avp 96\n", "m=video 0 RTP/AVP 96\n"},
      {"m=audio -1353744643 RTP/AVP 8", "m=audio 0 RTP/AVP 8"},
      {"m=audio 5004/ RTP/AVP 8\nm=audio x/2 RTP/AVP\nm=audio 1/y RTP/AVP/UDP 8\n",
       "m=audio 5004 RTP/AVP 8\nm=audio 0 RTP/AVP\nm=audio 1 RTP/AVP 8\n"},
      {"m=audio 0 TCP/RTP/AVPF 8\nm=audio 0 RTP 8\nm=audio 0 udp 8\n",
       "m=audio 0 RTP/AVPF 8\nm=audio 0 RTP/AVP 8\nm=audio 0 udp 8\n"},
      {"m=audio 0 RTP//AVP,RTP/AVPF 8\nm=audio 0 RTSP_AVPF 8\nm=audio 0 UDP/TLS/RTP/SAVPF 8\nm=audio 0 DTLS/RTP/AVP "
       "8\n",
       "m=audio 0 RTP/AVP 8\nm=audio 0 RTP/AVPF 8\nm=audio 0 UDP/TLS/RTP/SAVPF 8\nm=audio 0 DTLS/RTP/AVP 8\n"},
  };
  for (const auto& [text, written] : cases) {
    const Description description = parsed(text);
    EXPECT_EQ(description.text().view(), written);
    EXPECT_TRUE(description.left_out.empty()) << text;
    EXPECT_EQ(parsed(written).text().view(), written);
  }
}

TEST(Description, LeavesOutWhatCannotBeRead) {
  struct Case {
    std::string text, written;
    std::vector<std::string> media, lines;
  };
  const std::string audio = "m=audio 0 RTP/AVP 8\na=x\n";
  for (const Case& one : {
           Case{"v=0\nm=video\na=control:1\n" + audio,
                "v=0\n" + audio,
                {"line 2: a medium without a port or a transport"},
                {}},
           Case{"v=0\nm=\nm=video 1\n",
                "v=0\n",
                {"line 2: '' is no kind of medium", "line 3: a medium without a port or a transport"},
                {}},
           Case{audio + "m=application/TP-LINK 0 RTP/AVP smart/1/90000\na=y\n",
                audio,
                {"line 3: 'application/TP-LINK' is no kind of medium"},
                {}},
           Case{"v=0\nm=vi\x1b[2Jdeo 1 RTP/AVP 96\n", "v=0\n", {"line 2: 'vi?[2Jdeo' is no kind of medium"}, {}},
           Case{"v=0\nm video 0 RTP/AVP 96\n\vm=video 0 RTP/AVP 96\n=\na\n1=x\n" + audio,
                "v=0\n" + audio,
                {},
                {"line 2", "line 3", "line 4", "line 5", "line 6"}},
       }) {
    const Description description = parsed(one.text);
    EXPECT_EQ(description.text().view(), one.written);
    std::vector<std::string> media, lines;
    for (const LeftOut& left_out : description.left_out) {
      left_out.medium ? media.push_back(left_out.why) : lines.push_back(left_out.why.substr(0, left_out.why.find(':')));
    }
    EXPECT_EQ(media, one.media) << one.text;
    EXPECT_EQ(lines, one.lines) << one.text;
  }
  Limits small;
  small.media = 1;
  const Description description = parsed(audio + audio, small);
  EXPECT_EQ(description.text().view(), audio);
  EXPECT_EQ(description.left_out.at(0).why, "line 3: a description has at most 1 media");
}

TEST(Description, IsRefusedWithItsLine) {
  Limits small;
  small.bytes = 300;
  small.lines = 4;
  small.line_bytes = 100;
  small.media = 1;
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "empty"},
      {"s=x\r\n", "neither v= nor m="},
      {std::string("\0v=0\r\nm=audio 0 RTP/AVP 0\r\n", 28), "it is empty"},
      {"<html>\r\nm:\r\n", "neither v= nor m="},
      {"v=0\r\n" + std::string(300, 'a'), "the limit is 300"},
      {"v=0\r\n" + std::string(101, 'a'), "line 2: a line has at most 100 bytes"},
      {"v=0\n1\n2\n3\n4\n", "line 5: a description has at most 4 lines"},
  };
  for (const auto& [text, part] : cases) {
    const auto description = Description::parse(text, small);
    ASSERT_FALSE(description) << text;
    EXPECT_NE(description.error().message.find(part), std::string::npos) << text << ": " << description.error().message;
  }
}

}  // namespace
}  // namespace sluice::media::sdp
