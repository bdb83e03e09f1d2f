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
           "v=0\r\nmixed\n\r\n\r\n=\r\na\r\nz=unknown line\r\nm=audio 5004/2 RTP/AVP 0 8 \r\n",
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
  Description description = parsed("v=0\nm=video 0/2 RTP/AVP 96 \na=crypto:1 x\na=b\na=crypto:2 y\na=cryptograph:3");
  Medium& medium = description.media[0];
  EXPECT_EQ(medium.remove_attributes("crypto"), 2U);
  medium.set_protocol("RTP/SAVP");
  medium.add_attribute("key-mgmt", "mikey AA==");
  EXPECT_EQ(description.text().view(), "v=0\nm=video 0/2 RTP/SAVP 96 \na=b\na=cryptograph:3\na=key-mgmt:mikey AA==\n");
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

TEST(Description, IsRefusedWithItsLine) {
  Limits small;
  small.bytes = 300;
  small.lines = 4;
  small.line_bytes = 100;
  small.media = 1;
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "empty"},
      {"s=x\r\n", "line 1: a description begins with v=0"},
      {"v=1\r\n", "line 1"},
      {"v=0\r\nm=video\r\n", "line 2: not a medium that can be read: 'm=video'"},
      {"v=0\r\nm=video 65536 RTP/AVP 96\r\n", "line 2"},
      {"v=0\r\nm=video 1/ RTP/AVP 96\r\n", "line 2"},
      {"v=0\r\nm=video 1  RTP/AVP 96\r\n", "line 2"},
      {"v=0\r\nm=video 1 RTP/AVP\r\n", "line 2"},
      {"v=0\r\nm=vi\x1b[2Jdeo 1 RTP/AVP 96\r\n", "line 2: not a medium that can be read: 'm=vi?[2Jdeo"},
      {"v=0\r\nm=vid\xc2\x9b"
       "eo 1 RTP/AVP 96\r\n",
       "line 2"},
      {"v=0\r\n m=video 1 RTP/AVP 96\r\n", "line 2"},
      {"v=0\r\nM=video 1 RTP/AVP 96\r\n", "line 2"},
      {"v=0\r\nm =video 1 RTP/AVP 96\r\n", "line 2"},
      {"v=0\r\na=x\rm=video 1 RTP/AVP 96\r\n", "line 2: a carriage return"},
      {std::string("v=0\r\na=\0\r\n", 10), "line 2"},
      {"v=0\r\n" + std::string(300, 'a'), "the limit is 300"},
      {"v=0\r\n" + std::string(101, 'a'), "line 2: a line has at most 100 bytes"},
      {"v=0\n1\n2\n3\n4\n", "line 5: a description has at most 4 lines"},
      {"v=0\nm=a 1 b c\nm=a 1 b c\n", "line 3: a description has at most 1 media"},
  };
  for (const auto& [text, part] : cases) {
    const auto description = Description::parse(text, small);
    ASSERT_FALSE(description) << text;
    EXPECT_NE(description.error().message.find(part), std::string::npos) << text << ": " << description.error().message;
  }
}

}  // namespace
}  // namespace sluice::media::sdp
