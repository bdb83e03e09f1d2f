// What servers that keep to no RFC say, and what the client of the proxy gets of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "media/rtsp/proxy.h"
#include "media/rtsp/proxy_trial_test.h"

namespace sluice::media::rtsp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The m= lines.
std::string media_of(const std::string& description) {
  std::string lines;
  for (std::size_t at = description.find("\nm="); at != std::string::npos; at = description.find("\nm=", at + 1)) {
    lines += description.substr(at + 1, description.find_first_of("\r\n", at + 1) - at - 1) + '\n';
  }
  return lines;
}

// What players take of servers that keep to no RFC.
TEST(OddServers, OddDescriptionsAreOffered) {
  struct Case {
    std::string headers, body, media, omitted = "";
  };
  const std::string good = "v=0\r\nm=video 0 RTP/AVP 96\r\n", one_medium = "m=video 0 RTP/SAVP 96\n";
  for (const Case& one : {
           Case{"", good, one_medium},
           Case{"Content-Type: text/plain\r\n", good, one_medium},
           Case{"content-TYPE: Application/SDP ; charset=utf-8\r\n", good, one_medium},
           Case{"Content-Type:\r\nContent-Encoding:\r\n", good, one_medium},
           Case{"", "m=video 0 RTP/AVP 96\r\n", one_medium},
           Case{"", "v=0\r\nm=audio -1353744643 RTP/AVP 8\r\n", "m=audio 0 RTP/SAVP 8\n"},
           Case{"", "v=0\r\nm=application/TP-LINK 0 RTP/AVP smart/1/90000\r\na=control:x\r\nm=audio 0 RTP/AVP 8\r\n",
                "m=audio 0 RTP/SAVP 8\n", "1 medium line 2: 'application/TP-LINK' is no kind of medium"},
           Case{"", good + "m=video 0 RTP/SAVP 97\r\nm=text 0 udp 33\r\n", one_medium,
                "2 medium line 3: a medium of 'RTP/SAVP' cannot be protected: RTP/AVP and RTP/AVPF can"},
           Case{"", "v=0\r\nm=video 0 RTP//AVP 96\r\n", one_medium},
           Case{"", "v=0\r\nm=video 0 rtp/avp/unicast 96\r\n", one_medium},
           Case{"", "v=0\r\nm=video 0 RTSP/AVP 96\r\n", one_medium},
           Case{"", "v=0\r\nm=video 0 RTP-AVP 96\r\n", one_medium},
           Case{"", "v=0\r\nno line\r\nm=video 0 RTP/AVP 96\r\n", one_medium,
                "1 description_line line 2: it is not of the form x=..."},
           Case{"",
                std::string("\xEF\xBB\xBF\r\n v = 0 \r\r m =  video\t0 rtp/avp/tcp  96 \n\0m=audio 0 RTP/AVP 0", 58),
                one_medium},
       }) {
    Trial trial;
    trial.client(test::ffmpeg_describe);
    const std::string answer = trial.server(test::with_body("RTSP/1.0 200 OK\r\nCSeq: 2\r\n" + one.headers, one.body));
    EXPECT_THAT(answer, HasSubstr("200 OK")) << one.body;
    EXPECT_THAT(answer, testing::AnyOf(HasSubstr("Content-Type: application/sdp\r\n"), HasSubstr("Application/SDP ;")));
    EXPECT_EQ(media_of(answer), one.media) << one.body;
    EXPECT_THAT(answer, HasSubstr("a=crypto:1 ")) << one.body;
    EXPECT_THAT(trial.host.refusals, IsEmpty()) << one.body;
    EXPECT_EQ(trial.host.omitted, one.omitted.empty() ? std::vector<std::string>{} : std::vector{one.omitted});
  }
}

// Nobody can ask for what was left out: it would come in clear.
TEST(OddServers, MediaThatWereLeftOutAreNotSetUp) {
  Trial trial;
  trial.describe(test::gst_description() + "m=application/x 0 RTP/AVP 99\r\na=control:stream=2\r\n" +
                 "m=video 0 RTP/SAVP 98\r\na=control:stream=3\r\n");
  for (const std::string number : {"2", "3"}) {
    EXPECT_EQ(trial.client("SETUP rtsp://10.9.0.1:8554/plain/stream=" + number +
                           " RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/AVP;unicast;client_port=5000-5001\r\n\r\n"),
              "");
    EXPECT_THAT(trial.answer(), HasSubstr("455"));
  }
  EXPECT_THAT(trial.host.omitted, ElementsAre(HasSubstr("2 medium line 2")));
}

// The client reads its own CSeq, and nothing that is no header.
TEST(OddServers, OddAnswersArePassedInOrder) {
  for (const std::string head : {"", "cseq: 1\r\nCSEQ: 1\r\n", "CSeq: 1;\r\n", "CSeq: 01\r\n", "CSeq : 1\r\n",
                                 "CSeq:\r\n", "CSeq: x\r\n", "CSeq: 1\r\n \r\n", "CSeq 1\r\n"}) {
    Trial trial;
    const std::string options = "OPTIONS * RTSP/1.0\r\nCSeq: ";
    trial.client(options + "1\r\n\r\n" + options + "2\r\n\r\n");
    const std::string answer = trial.server("RTSP/1.0 200\r\n" + head + "no header\r\nX : y\r\n\r\n");
    EXPECT_THAT(answer,
                testing::AnyOf("RTSP/1.0 200\r\nCSeq: 1\r\nX: y\r\n\r\n", "RTSP/1.0 200\r\nX: y\r\nCSeq: 1\r\n\r\n"))
        << head;
    EXPECT_THAT(trial.host.omitted.at(0), HasSubstr(" header_line line ")) << head;
    EXPECT_EQ(trial.proxy.counters().left_out.at(static_cast<std::size_t>(Omission::header_line)),
              head == "CSeq 1\r\n" ? 2U : 1U);
    EXPECT_THAT(trial.server("RTSP/1.0 551 No\r\n\r\n"), HasSubstr("CSeq: 2\r\n"));
    EXPECT_EQ(trial.server("RTSP/1.0 551 No\r\n\r\n"), "") << "nobody asked";
  }
}

// A server that writes always the same CSeq, as some do: the answer is that of the one request that waits.
TEST(OddServers, AnswersWithAnotherNumber) {
  using namespace std::string_literals;
  for (const std::string& cseq : {"CSeq: 1"s, "CSeq: 0"s, "CSeq: 99"s, "CSeq: 99\r\nCSeq: 2"s, "CSeq: 2\0"s}) {
    Trial trial;
    trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
    trial.server("RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n");
    trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 2\r\n\r\n");
    EXPECT_THAT(trial.server("RTSP/1.0 200 OK\r\n" + cseq + "\r\n\r\n"), HasSubstr("CSeq: 2\r\n")) << cseq;
    EXPECT_EQ(trial.server("RTSP/1.0 200 OK\r\n" + cseq + "\r\n\r\n"), "") << "nobody waits";
  }
  Trial trial;
  trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\nOPTIONS * RTSP/1.0\r\nCSeq: 2\r\n\r\n");
  EXPECT_EQ(trial.server("RTSP/1.0 200 OK\r\nCSeq: 99\r\n\r\n"), "") << "of two nobody can say whose it is";
}

// Some name an encoding of their text, or one that they do not apply.
TEST(OddServers, EncodingsOfADescription) {
  for (const std::string encoding : {"utf-8", "none", "8bit", "gzip", "identity, identity", ""}) {
    Trial trial;
    trial.client(test::ffmpeg_describe);
    const std::string answer = trial.server(test::with_body(
        "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Encoding: " + encoding + "\r\n", "v=0\r\nm=video 0 RTP/AVP 96\r\n"));
    EXPECT_THAT(answer, HasSubstr("200 OK")) << encoding;
    EXPECT_EQ(answer.find("Content-Encoding: " + encoding + "\r\n") != std::string::npos, encoding.empty()) << encoding;
  }
}

// Its requests name none, either.
TEST(OddServers, AServerWithoutSessions) {
  Trial trial;
  trial.describe();
  trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001"));
  EXPECT_THAT(trial.server(setup_answer(good_answer, "")), HasSubstr("200 OK"));
  ASSERT_EQ(trial.proxy.open_streams(), 1U);
  trial.proxy.client_closed();
  EXPECT_EQ(Trial::taken(trial.proxy.to_server()),
            "TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\nCSeq: 1000000000\r\n\r\n");
}

// By which URIs clients ask for a medium, whatever the server says of its base and controls.
TEST(OddServers, UrisThatMeanAMedium) {
  struct Case {
    std::string headers, controls, uri;
  };
  const std::string base = "rtsp://10.9.0.1:8554/cam";
  for (const Case& one : {
           Case{"", "a=control:t1\r\n", base + "/t1"},
           Case{"", "a=control:t1\r\n", "rtsp://10.9.0.1:8554/t1"},
           Case{"", "", base},
           Case{"Content-Base:\r\n", "a=control:t1\r\n", base + "/t1"},
           Case{"Content-Base: rtsp://other/x/\r\n", "a=control:t1\r\n", "rtsp://other/x/t1"},
           Case{"Content-Base: rtsp://other/x/\r\n", "a=control:t1\r\n", base + "/t1"},
           Case{"Content-Base: /y/\r\n", "a=control:t1\r\n", "rtsp://10.9.0.1:8554/y/t1"},
           Case{"Content-Location: y\r\n", "a=control:t1\r\n", "rtsp://10.9.0.1:8554/y/t1"},
           Case{"Content-Base: rtsp://h/a?x=1&y=2\r\n", "a=control:t1\r\n", "rtsp://h/a/t1?x=1&y=2"},
           Case{"Content-Base: rtsp://h/a?x=1\r\n", "a=control:t1\r\n", "rtsp://h/a?x=1/t1"},
           Case{"", "a=control:?ctype=video\r\n", base + "?ctype=video"},
           Case{"", "a=control:?ctype=video\r\n", base + "/?ctype=video"},
           Case{"", "a=control:rtsp://h/b?c=1/2\r\n", "rtsp://10.9.0.1/b?c=1/2"},
           Case{"", "a=control:t1\r\na=control:t2\r\n", base + "/t1"},
           Case{"", "a=control:t1\r\na=control:t2\r\n", base + "/t2"},
           Case{"", "a=control:t1\r\na=control:t2\r\n", base + "/t1/t2"},
           Case{"", "a=control:*\r\n", base + "/"},
           Case{"", "a=control:*\r\n", base + "/*"},
           Case{"", "a=control:track=1\r\n", base + "/track%3D1"},
           Case{"", "a=control:../x/t1\r\n", "rtsp://10.9.0.1:8554/x/t1"},
           Case{"", "a=control:/x/t1\r\n", base + "//x/t1"},
           Case{"Content-Base: <rtsp://h/x/>\r\n", "a=control:t1\r\n", "rtsp://h/x/t1"},
           Case{"Content-Base: \"rtsp://h/x/\" \r\n", "a=control:t1\r\n", "rtsp://h/x/t1"},
           Case{"", " a = control : t1 \r\n", base + "/t1"},
       }) {
    Trial trial;
    trial.client("DESCRIBE " + base + " RTSP/1.0\r\nCSeq: 2\r\n\r\n");
    trial.server(test::with_body("RTSP/1.0 200 OK\r\nCSeq: 2\r\n" + one.headers,
                                 "v=0\r\nm=video 0 RTP/AVP 96\r\n" + one.controls));
    EXPECT_NE(trial.client("SETUP " + one.uri + " RTSP/1.0\r\nCSeq: 3\r\nTransport: " + good_answer + "\r\n\r\n"), "")
        << one.headers << one.controls << one.uri;
  }
}

// What a player of an explicit proxy reads leads to the proxy, however the server wrote it.
TEST(OddServers, LeadToTheExplicitProxy) {
  Addresses addresses = transparent();
  addresses.facing_client = address("10.8.0.7");
  addresses.facing_server = address("10.9.0.7");
  addresses.client_authority = "10.8.0.7:554";
  addresses.server_authority = "10.9.0.1:554";
  Trial trial({}, addresses);
  trial.client("DESCRIBE rtsp://10.8.0.7/cam RTSP/1.0\r\nCSeq: 2\r\n\r\n");
  const std::string answer = trial.server(
      test::with_body("RTSP/1.0 200 OK\r\nContent-Base : cam/x/\r\n",
                      " O = - 1 1 IN IP4 10.9.0.1 \r\nm=audio x RTP/AVP 8\r\nC = IN IP4 10.9.0.1\r\n"
                      "a = control : rtsp://10.9.0.1/cam/t1 \r\n a = candidate:1 1 UDP 1 10.9.0.1 6000 typ host\r\n"));
  EXPECT_THAT(answer, HasSubstr("CSeq: 2\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Base: rtsp://10.8.0.7/cam/x/\r\n"));
  EXPECT_THAT(answer, HasSubstr("o=- 1 1 IN IP4 10.8.0.7\r\nm=audio 0 RTP/SAVP 8\r\nc=IN IP4 10.8.0.7\r\n"
                                "a=control:rtsp://10.8.0.7/cam/t1\r\na=crypto:1 "));
  EXPECT_THAT(answer, testing::Not(HasSubstr("10.9.0.1")));
}

}  // namespace
}  // namespace sluice::media::rtsp
