#include "media/rtsp/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/name.h"
#include "media/rtsp/proxy_text.h"
#include "media/rtsp/proxy_trial_test.h"
#include "media/sdp/crypto_attribute.h"

namespace sluice::media::rtsp {
namespace {

using namespace std::chrono_literals;
using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Everything that ffmpeg and the server say, whole and in pieces.
TEST(Proxy, FfmpegPlaysAndLeaves) {
  for (const std::size_t piece : {std::string::npos, std::size_t{1}, std::size_t{17}}) {
    Trial trial;
    EXPECT_EQ(trial.client(test::ffmpeg_options, piece), test::ffmpeg_options);
    EXPECT_EQ(trial.server(test::gst_options_answer, piece), test::gst_options_passed);
    EXPECT_EQ(trial.client(test::ffmpeg_describe, piece), test::ffmpeg_describe);
    const std::string offered = trial.server(test::with_body(test::gst_describe_head, test::gst_description()), piece);
    const auto line = [&](std::string_view start, std::size_t from) {
      const std::size_t at = offered.find(start, from);
      return offered.substr(at, offered.find("\r\n", at) + 2 - at);
    };
    const std::size_t audio = offered.find("m=audio");
    const std::string body = std::string(test::gst_session) + "m=video 0 RTP/SAVP 96\r\n" +
                             std::string(test::gst_video) + line("a=crypto:", 0) + line("a=key-mgmt:mikey ", 0) +
                             "m=audio 0 RTP/SAVP 8\r\n" + std::string(test::gst_audio) + line("a=crypto:", audio) +
                             line("a=key-mgmt:mikey ", audio);
    EXPECT_EQ(offered, test::with_body(test::gst_describe_head, body));

    EXPECT_EQ(trial.client(test::ffmpeg_setup_video, piece), test::ffmpeg_setup_video);
    EXPECT_THAT(trial.host.streams, IsEmpty());
    EXPECT_EQ(trial.server(test::gst_setup_video_answer, piece), test::gst_setup_video_answer);
    ASSERT_EQ(trial.host.streams.size(), 1U);
    const Stream& video = trial.host.streams[0];
    EXPECT_EQ(video.number, 1U);
    EXPECT_EQ(video.session, "fwZMuBoktkKvhvLA");
    EXPECT_EQ(video.kind, "video");
    EXPECT_EQ(video.client_side.client.str(), "10.9.0.2");
    EXPECT_EQ(video.client_side.client_ports, (PortPair{12322, 12323}));
    EXPECT_EQ(video.server_side.server.str(), "10.9.0.1");
    EXPECT_EQ(video.server_side.server_ports, (PortPair{44512, 44513}));
    EXPECT_EQ(video.rate, 2'097'000U);
    EXPECT_THAT(video.ssrcs, ElementsAre(4255318117U));
    EXPECT_TRUE(video.plain_profile);
    EXPECT_FALSE(video.from_client);
    const auto crypto = sdp::parse_crypto(line("a=crypto:", 0).substr(9, line("a=crypto:", 0).size() - 11));
    ASSERT_TRUE(crypto) << crypto.error().message;
    EXPECT_TRUE(crypto->keys.at(0).key == video.to_client);
    const std::string mikey_line = line("a=key-mgmt:mikey ", 0);
    const auto mikey = mikey::parse(*base64_decode(mikey_line.substr(17, mikey_line.size() - 19)));
    ASSERT_TRUE(mikey) << mikey.error().message;
    EXPECT_TRUE(mikey->key == video.to_client);
    EXPECT_THAT(mikey->streams, ElementsAre(mikey::Stream{4255318117U, 0}));

    trial.client(test::ffmpeg_setup_audio, piece);
    EXPECT_EQ(trial.server(test::gst_setup_audio_answer, piece), test::gst_setup_audio_answer);
    ASSERT_EQ(trial.host.streams.size(), 2U);
    EXPECT_FALSE(trial.host.streams[1].to_client == trial.host.streams[0].to_client);
    EXPECT_EQ(trial.client(test::ffmpeg_play, piece), test::ffmpeg_play);
    EXPECT_EQ(trial.server(test::gst_play_answer, piece), test::gst_play_answer);
    trial.client(test::ffmpeg_teardown, piece);
    EXPECT_THAT(trial.host.ends, IsEmpty());
    EXPECT_EQ(trial.server(test::gst_teardown_answer, piece), test::gst_teardown_answer);
    EXPECT_THAT(trial.host.ends, ElementsAre("1 teardown", "2 teardown"));
    EXPECT_THAT(trial.host.refusals, IsEmpty());
    EXPECT_EQ(trial.proxy.counters().requests, 6U);
    EXPECT_EQ(trial.proxy.counters().responses, 6U);
    EXPECT_EQ(trial.proxy.counters().opened, 2U);
  }
}

TEST(Proxy, DescriptionsThatCannotBeProtected) {
  const auto answer_of = [](std::string_view headers, std::string_view body) {
    return test::with_body("RTSP/1.0 200 OK\r\nCSeq: 2\r\n" + std::string(headers), body);
  };
  const std::string sdp_type = "Content-Type: application/sdp;charset=utf-8\r\n";
  const std::pair<std::string, std::string_view> cases[] = {
      {answer_of(sdp_type + "Content-Encoding: gzip\r\n", "\x1f\x8b\x08"), "it is packed as 'gzip'"},
      {answer_of(sdp_type, "x=0\r\n"), "neither v= nor m="},
      {answer_of("Content-Type: text/html\r\n", "<html>\r\n"), "neither v= nor m="},
      {answer_of(sdp_type, ""), "neither v= nor m="},
      {answer_of(sdp_type, "v=0\r\nm=video 0 RTP/SAVP 96\r\n"), "line 2: a medium of 'RTP/SAVP' cannot be protected"},
      {answer_of(sdp_type, "v=0\r\nm=vi/deo 0 RTP/AVP 96\r\nm=video 0 udp 33\r\n"), "line 2: 'vi/deo' is no kind"},
  };
  for (const auto& [answer, why] : cases) {
    Trial trial;
    trial.client(test::ffmpeg_describe);
    EXPECT_EQ(trial.server(answer), "RTSP/1.0 502 Bad Gateway\r\nCSeq: 2\r\n\r\n");
    EXPECT_THAT(trial.host.reasons.at(0), HasSubstr(why));
  }
  Trial trial;
  trial.client(test::ffmpeg_describe);
  const std::string refused = "RTSP/1.0 404 Not Found\r\nCSeq: 2\r\n\r\n";
  EXPECT_EQ(trial.server(refused), refused) << "passes as it is";
}

// In an answer to anything but DESCRIBE nobody would make it one of SRTP.
TEST(Proxy, DescriptionsThatNobodyAskedFor) {
  struct Case {
    std::string method, type, body;
    unsigned status;
    bool passes;
  };
  const std::string sdp = "v=0\r\nm=video 0 RTP/AVP 96\r\n", parameters = "packets_received\r\n";
  for (const Case& one : {
           Case{"GET_PARAMETER", "application/sdp", sdp, 200, false},
           Case{"GET_PARAMETER", "Application/SDP; charset=utf-8", sdp, 200, false},
           Case{"GET_PARAMETER", "text/parameters\r\nContent-Type: application/sdp", sdp, 200, false},
           Case{"GET_PARAMETER", "application/sdp\r\nContent-Encoding: gzip", "packed", 200, false},
           Case{"GET_PARAMETER", "text/parameters", sdp, 200, false},
           Case{"GET_PARAMETER", "text/parameters", "v=0\nm=video 0 RTP/AVP 96\n", 200, false},
           Case{"GET_PARAMETER", "text/parameters", "\r\n v=0\rm=video 0 RTP/AVP 96\r\n", 200, false},
           Case{"GET_PARAMETER", "text/parameters", "\xEF\xBB\xBFv=0\r\n", 200, false},
           Case{"GET_PARAMETER", "text/parameters", "m=video 0 RTP/AVP 96\r\n", 200, false},
           Case{"GET_PARAMETER", "text/parameters", "v=01\r\n", 200, true},
           Case{"GET_PARAMETER", "text/parameters", "\r\n", 200, true},
           Case{"GET_PARAMETER", "text/parameters", parameters, 200, true},
           Case{"PLAY", "application/sdp", sdp, 200, false},
           Case{"DESCRIBE", "application/sdp", sdp, 300, false},
           Case{"DESCRIBE", "text/html", parameters, 404, true},
       }) {
    Trial trial;
    trial.client(one.method + " rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nCSeq: 2\r\n\r\n");
    const std::string answer = test::with_body(
        "RTSP/1.0 " + std::to_string(one.status) + " X\r\nCSeq: 2\r\nContent-Type: " + one.type + "\r\n", one.body);
    EXPECT_EQ(trial.server(answer), one.passes ? answer : "RTSP/1.0 502 Bad Gateway\r\nCSeq: 2\r\n\r\n") << answer;
    EXPECT_EQ(trial.host.refusals,
              one.passes ? std::vector<std::string>{} : std::vector<std::string>{"description 502"});
  }
}

// As peers read that are liberal.
TEST(Proxy, OddKeysOfTheServersGo) {
  Trial trial;
  trial.client(test::ffmpeg_describe);
  std::string description = test::gst_description();
  for (const std::string line : {" a=crypto:1 x inline:foreign\r\n", "A=Crypto:1 foreign\n", "a= crypto:foreign\n",
                                 "a=KEY-MGMT : foreign\r\n", "\ta=key-mgmt:mikey foreign\r\n", "a=crypto\r\n"}) {
    description.insert(description.find("m="), line);
    description += line;
  }
  const std::string answer = trial.server(test::with_body(test::gst_describe_head, description));
  EXPECT_THAT(answer, testing::Not(HasSubstr("foreign")));
  EXPECT_THAT(answer, HasSubstr("a=crypto:1 AES_CM"));
}

// What the answer says is taken note of all the same.
TEST(Proxy, DescriptionsInAnswersThatEndThings) {
  const auto with_sdp = [](std::string_view head) {
    return test::with_body(std::string(head) + "Content-Type: application/sdp\r\n", "v=0\r\n");
  };
  Trial trial;
  trial.set_up();
  trial.client(test::ffmpeg_teardown);
  trial.server(with_sdp("RTSP/1.0 200 OK\r\nCSeq: 6\r\n"));
  EXPECT_THAT(trial.host.ends, ElementsAre("1 teardown"));
  EXPECT_THAT(trial.host.refusals, ElementsAre("description 502"));

  for (const std::string_view status : {"200 OK", "404 Not Found"}) {
    Trial other;
    other.describe();
    other.client(setup("RTP/SAVP;unicast;client_port=5000-5001"));
    EXPECT_EQ(other.server(with_sdp("RTSP/1.0 100 Continue\r\nCSeq: 3\r\n")), "") << "the answer is yet to come";
    EXPECT_THAT(other.host.ends, IsEmpty());
    EXPECT_THAT(other.server(with_sdp("RTSP/1.0 " + std::string(status) +
                                      "\r\nCSeq: 3\r\nSession: s1\r\nTransport: " + good_answer + "\r\n")),
                HasSubstr("502 Bad Gateway"));
    EXPECT_THAT(other.host.ends, ElementsAre("1 setup_failed"));
    EXPECT_THAT(other.host.streams, IsEmpty());
    EXPECT_EQ(Trial::taken(other.proxy.to_server()).starts_with("TEARDOWN"), status == "200 OK");
  }
}

TEST(Proxy, DescribeAsksForNothingPacked) {
  Trial trial;
  const std::string_view start = "DESCRIBE * RTSP/1.0\r\nCSeq: 1\r\n";
  EXPECT_EQ(trial.client(std::string(start) + "Accept-Encoding: gzip\r\nA: b\r\n\r\n"),
            std::string(start) + "A: b\r\n\r\n");
}

TEST(Proxy, KeyMgmtGoesNoFurther) {
  Trial trial;
  EXPECT_EQ(trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nKeyMgmt: prot=mikey;data=\"AQ==\"\r\n\r\n"),
            "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
  const std::string ask = "OPTIONS * RTSP/1.0\r\nCSeq: 7\r\n\r\n";
  EXPECT_EQ(trial.server(ask), ask);
  EXPECT_EQ(trial.client("RTSP/1.0 200 OK\r\nkeymgmt: prot=mikey;\r\n data=\"AQ==\"\r\nCSeq: 7\r\n\r\n"),
            "RTSP/1.0 200 OK\r\nCSeq: 7\r\n\r\n");
}

// A request in the body of another, for a server that does not join the fold of its length.
TEST(Proxy, NoRequestIsSmuggledPastIt) {
  const std::string inner =
      "SETUP rtsp://10.9.0.1:8554/plain/stream=0 RTSP/1.0\r\nCSeq: 9\r\n"
      "Transport: RTP/AVP;unicast;client_port=5000-5001\r\n\r\n";
  const std::string start = "GET_PARAMETER * RTSP/1.0\r\nCSeq: 1\r\n", size = std::to_string(inner.size());
  for (const std::string& length : {"Content-Length:\r\n " + size, "Content-Length " + size, "content length: " + size,
                                    "Content-Length: 0\r\nContent-Length: " + size, "Content-Length : " + size,
                                    "Content-Length: +" + size, "A: b\rContent-Length: " + size}) {
    Trial trial;
    trial.describe();
    EXPECT_EQ(trial.client(start + length + "\r\n\r\n" + inner), "") << length;
    EXPECT_EQ(trial.answer(), "RTSP/1.0 400 Bad Request\r\nCSeq: 1\r\n\r\n") << length;
  }
  Trial trial;
  trial.describe();
  EXPECT_EQ(trial.client(start + "A: b\r\n Content-Length: 0\nContent-Length: 0" + size + "\r\n \n\n" + inner),
            start + "A: b Content-Length: 0\r\nContent-Length: " + size + "\r\n\r\n" + inner);
}

TEST(Proxy, NoRandomBytesNoKeys) {
  Recorder host;
  Proxy proxy({}, transparent(), host, [](std::span<std::uint8_t>) -> Expected<void> { return make_error("no luck"); });
  proxy.from_client(test::ffmpeg_describe, {});
  proxy.from_server(test::with_body(test::gst_describe_head, test::gst_description()), {});
  EXPECT_THAT(std::string(proxy.to_client().view()), HasSubstr("502"));
  EXPECT_THAT(host.reasons, ElementsAre("no luck"));
}

TEST(Proxy, AnswersKeepTheOrderOfTheirRequests) {
  Trial trial;
  const auto options = [](int cseq) { return "OPTIONS * RTSP/1.0\r\nCSeq: " + std::to_string(cseq) + "\r\n\r\n"; };
  const auto answer = [](int cseq, int status = 200) {
    return "RTSP/1.0 " + std::to_string(status) + " OK\r\nCSeq: " + std::to_string(cseq) + "\r\n\r\n";
  };
  EXPECT_EQ(trial.client(options(1) + setup("RTP/AVP", "", 2) + options(3) + options(4)),
            options(1) + options(3) + options(4));
  EXPECT_EQ(trial.answer(), "") << "the proxy's own 455 waits";
  EXPECT_EQ(trial.server(answer(3)), "");
  EXPECT_EQ(trial.server(answer(1, 100)), answer(1, 100)) << "an interim answer does not end the wait";
  EXPECT_EQ(trial.server(answer(1)),
            answer(1) + "RTSP/1.0 455 Method Not Valid in This State\r\nCSeq: 2\r\n\r\n" + answer(3));
  EXPECT_EQ(trial.server(answer(9)), "");
  EXPECT_EQ(trial.server(answer(3)), "") << "a second answer";
  EXPECT_EQ(trial.proxy.counters().unmatched_responses, 2U);
  EXPECT_EQ(trial.server(answer(4)), answer(4));
}

TEST(Proxy, PendingRequestsAreBounded) {
  Settings settings;
  settings.max_pending = 2;
  Trial trial(settings);
  std::string all;
  for (int i = 1; i <= 4; ++i) {
    all += "OPTIONS * RTSP/1.0\r\nCSeq: " + std::to_string(i) + "\r\n\r\n";
  }
  EXPECT_EQ(trial.client(all), all.substr(0, all.size() / 2));
  EXPECT_FALSE(trial.proxy.wants_client());
  trial.server("RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\nRTSP/1.0 200 OK\r\nCSeq: 2\r\n\r\n");
  EXPECT_EQ(Trial::taken(trial.proxy.to_server()), all.substr(all.size() / 2)) << "those that waited";
}

TEST(Proxy, OutputsAreBounded) {
  Settings settings;
  settings.output_limit = 50;
  Trial trial(settings);
  trial.proxy.from_client(test::ffmpeg_options, trial.now);
  EXPECT_FALSE(trial.proxy.wants_client()) << "the server takes nothing";
  EXPECT_FALSE(trial.proxy.wants_server()) << "some of what it sends is answered by the proxy";
  trial.proxy.to_server().clear();
  EXPECT_TRUE(trial.proxy.wants_client() && trial.proxy.wants_server());
  trial.proxy.from_server(test::gst_options_answer, trial.now);
  EXPECT_FALSE(trial.proxy.wants_client() || trial.proxy.wants_server());
}

TEST(Proxy, DescriptionsAreBounded) {
  Settings settings;
  settings.max_descriptions = 1;
  Trial trial(settings);
  trial.describe();
  trial.describe("v=0\r\nm=audio 0 RTP/AVP 8\r\na=control:other\r\n");
  EXPECT_EQ(trial.proxy.counters().descriptions_forgotten, 1U);
  EXPECT_EQ(trial.client(test::ffmpeg_setup_video), "");
  EXPECT_THAT(trial.host.refusals, ElementsAre("no_offer 455"));
}

TEST(Proxy, TeardownOfOneMedium) {
  Trial trial;
  trial.set_up();
  trial.client(test::ffmpeg_setup_audio);
  trial.server(test::gst_setup_audio_answer);
  const auto teardown = [](std::string_view uri, int cseq) {
    return "TEARDOWN " + std::string(uri) + " RTSP/1.0\r\nCSeq: " + std::to_string(cseq) +
           "\r\nSession: fwZMuBoktkKvhvLA\r\n\r\n";
  };
  trial.client(teardown("rtsp://10.9.0.1:8554/plain/stream=0", 7));
  trial.server("RTSP/1.0 460 Only aggregate operation allowed\r\nCSeq: 7\r\n\r\n");
  EXPECT_THAT(trial.host.ends, IsEmpty());
  trial.client(teardown("rtsp://10.9.0.1:8554/plain/stream=0", 8));
  trial.server("RTSP/1.0 200 OK\r\nCSeq: 8\r\n\r\n");
  EXPECT_THAT(trial.host.ends, ElementsAre("1 teardown"));
  trial.client(teardown("rtsp://10.9.0.1:8554/plain/stream=1", 9));
  trial.server("RTSP/1.0 200 OK\r\nCSeq: 9\r\n\r\n");
  EXPECT_THAT(trial.host.ends, ElementsAre("1 teardown", "2 teardown"));
}

// With other ports, as RFC 2326 section 10.4 has it.
TEST(Proxy, TeardownOfAMediumThatWasSetUpAgain) {
  Trial trial;
  trial.set_up();
  trial.client(test::ffmpeg_setup_audio);
  trial.server(test::gst_setup_audio_answer);
  trial.describe();
  trial.client(test::setup("RTP/AVP;unicast;client_port=5000-5001", "Session: fwZMuBoktkKvhvLA\r\n"));
  trial.server(test::setup_answer(test::good_answer, "Session: fwZMuBoktkKvhvLA\r\n"));
  ASSERT_EQ(trial.proxy.open_streams(), 3U);
  trial.client("TEARDOWN rtsp://10.9.0.1:8554/plain/stream=0 RTSP/1.0\r\nCSeq: 8\r\nSession: fwZMuBoktkKvhvLA\r\n\r\n");
  trial.server("RTSP/1.0 200 OK\r\nCSeq: 8\r\n\r\n");
  EXPECT_THAT(trial.host.ends, ElementsAre("1 teardown", "3 teardown"));
  EXPECT_EQ(trial.proxy.open_streams(), 1U);
}

TEST(Proxy, TheServerKnowsTheSessionNoMore) {
  Trial trial;
  trial.set_up();
  trial.client(test::ffmpeg_play);
  trial.server("RTSP/1.0 454 Session Not Found\r\nCSeq: 5\r\n\r\n");
  EXPECT_THAT(trial.host.ends, ElementsAre("1 no_session"));
}

TEST(Proxy, SessionsTimeOut) {
  struct Case {
    std::string_view session;
    std::chrono::seconds lives;
  };
  for (const Case& one : {Case{"Session: s1\r\n", 70s}, Case{"Session: s1;timeout=5\r\n", 15s},
                          Case{"Session: s1 ; x=1; Timeout = 30\r\n", 40s}, Case{"Session: s1;timeout=x\r\n", 70s},
                          Case{"Session: s1;timeout=0\r\n", 70s}}) {
    Trial trial;
    trial.describe();
    trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001"));
    trial.server(setup_answer(good_answer, one.session));
    const auto after = [&](std::chrono::seconds time) {
      trial.now += time;
      trial.proxy.tick(trial.now);
      return trial.host.ends.size();
    };
    EXPECT_EQ(after(one.lives), 0U) << one.session;
    trial.client("GET_PARAMETER * RTSP/1.0\r\nCSeq: 9\r\nSession: s1\r\n\r\n");
    EXPECT_EQ(after(one.lives), 0U) << "a request of the session";
    trial.proxy.alive(1, trial.now);
    EXPECT_EQ(after(one.lives), 0U) << "its RTCP";
    trial.client("GET_PARAMETER * RTSP/1.0\r\nCSeq: 10\r\nSession: other\r\n\r\n");
    EXPECT_EQ(after(1s), 1U);
    EXPECT_THAT(trial.host.ends, ElementsAre("1 timeout"));
    EXPECT_THAT(Trial::taken(trial.proxy.to_server()), HasSubstr("TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\n"));
    EXPECT_FALSE(trial.proxy.over());
  }
}

// A server's description may hold what no request line can.
TEST(Proxy, ItsOwnTeardownIsOneLineOfThreeWords) {
  Trial trial;
  trial.client("DESCRIBE rtsp://10.9.0.1:8554/a RTSP/1.0\r\nCSeq: 2\r\n\r\n");
  trial.server(test::with_body("RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\n",
                               "v=0\r\na=control:rtsp://10.9.0.1:8554/a b\tc\x7f/\r\nm=audio 0 RTP/AVP 8\r\n"
                               "a=control:rtsp://10.9.0.1:8554/a/t1\r\n"));
  trial.client(
      "SETUP rtsp://10.9.0.1:8554/a/t1 RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/SAVP;unicast;"
      "client_port=5000-5001\r\n\r\n");
  trial.server(
      "RTSP/1.0 200 OK\r\nCSeq: 3\r\nSession: s1\r\nTransport: RTP/AVP;unicast;client_port=5000-5001;"
      "server_port=6000-6001\r\n\r\n");
  ASSERT_EQ(trial.host.streams.size(), 1U);
  trial.proxy.client_closed();
  EXPECT_THAT(Trial::taken(trial.proxy.to_server()),
              HasSubstr("TEARDOWN rtsp://10.9.0.1:8554/a%20b%09c%7F/ RTSP/1.0\r\n"));
}

constexpr struct {
  void (Proxy::*end)();
  const char* reason;
} ends[] = {{&Proxy::client_closed, " client_closed"},
            {&Proxy::client_gone, " client_gone"},
            {&Proxy::stop, " stopped"},
            {&Proxy::server_closed, " server_gone"}};

TEST(Proxy, ConnectionsEnd) {
  for (const auto& [end, reason] : ends) {
    Trial trial;
    trial.set_up();
    trial.client(test::ffmpeg_setup_audio);
    (trial.proxy.*end)();
    EXPECT_TRUE(trial.proxy.over());
    EXPECT_FALSE(trial.proxy.wants_client() || trial.proxy.wants_server());
    EXPECT_THAT(trial.host.ends, ElementsAre("1" + std::string(reason), "2" + std::string(reason)))
        << "the one on its way, too";
    const std::string last(trial.proxy.to_server().view());
    EXPECT_EQ(last.starts_with("TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\n"), end != &Proxy::server_closed);
    EXPECT_EQ(trial.server(test::gst_setup_audio_answer), "");
    EXPECT_EQ(trial.host.streams.size(), 1U);
  }
  Recorder host;
  {
    Proxy proxy({}, transparent(), host, counting());
    proxy.from_client(test::ffmpeg_describe, {});
    proxy.from_server(test::with_body(test::gst_describe_head, test::gst_description()), {});
    proxy.from_client(test::ffmpeg_setup_video, {});
    proxy.from_server(test::gst_setup_video_answer, {});
    EXPECT_EQ(proxy.open_streams(), 1U);
  }
  EXPECT_THAT(host.ends, ElementsAre("1 stopped"));
}

// Players close once they have asked; the server is asked once.
TEST(Proxy, ATeardownCountsWhoeverAwaitsItsAnswer) {
  for (const auto& [end, reason] : ends) {
    Trial trial;
    trial.set_up();
    trial.client(test::ffmpeg_setup_audio);
    trial.server(test::gst_setup_audio_answer);
    trial.client(test::ffmpeg_teardown);
    EXPECT_THAT(trial.host.ends, IsEmpty()) << "the server could say no";
    (trial.proxy.*end)();
    EXPECT_THAT(trial.host.ends, ElementsAre("1 teardown", "2 teardown")) << reason;
    EXPECT_EQ(Trial::taken(trial.proxy.to_server()), "") << reason;
  }
  const std::string of_audio =
      "TEARDOWN rtsp://10.9.0.1:8554/plain/stream=1 RTSP/1.0\r\nCSeq: 6\r\nSession: fwZMuBoktkKvhvLA\r\n\r\n";
  const std::string of_all =
      "TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\nCSeq: 1000000000\r\nSession: fwZMuBoktkKvhvLA\r\n\r\n";
  for (const bool refused : {false, true}) {
    Trial trial;
    trial.set_up();
    trial.client(test::ffmpeg_setup_audio);
    trial.server(test::gst_setup_audio_answer);
    trial.client(test::ffmpeg_play);  // whose answer others wait for
    trial.client(of_audio);
    if (refused) trial.server("RTSP/1.0 460 Only aggregate operation allowed\r\nCSeq: 6\r\n\r\n");
    trial.proxy.client_closed();
    EXPECT_THAT(trial.host.ends, refused ? ElementsAre("1 client_closed", "2 client_closed")
                                         : ElementsAre("2 teardown", "1 client_closed"));
    EXPECT_EQ(Trial::taken(trial.proxy.to_server()), of_all);
  }
}

// The server may refuse to end a medium by itself, and nobody is there who would ask again.
TEST(Proxy, ATeardownOfTheLastMediumEndsItsSessionToo) {
  const std::string of_video =
      "TEARDOWN rtsp://10.9.0.1:8554/plain/stream=0 RTSP/1.0\r\nCSeq: 6\r\nSession: fwZMuBoktkKvhvLA\r\n\r\n";
  for (const auto& [end, reason] : ends) {
    Trial trial;
    trial.set_up();
    trial.client(of_video);
    (trial.proxy.*end)();
    EXPECT_THAT(trial.host.ends, ElementsAre("1 teardown")) << reason;
    EXPECT_EQ(Trial::taken(trial.proxy.to_server()),
              end == &Proxy::server_closed ? ""
                                           : "TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\nCSeq: 1000000000\r\n"
                                             "Session: fwZMuBoktkKvhvLA\r\n\r\n")
        << reason;
  }
}

TEST(Proxy, UnreadableBytesEndIt) {
  Trial bad_client;
  bad_client.set_up();
  bad_client.client("\x01\x02\r\n\r\n");
  EXPECT_THAT(bad_client.host.ends, ElementsAre("1 protocol"));
  EXPECT_EQ(bad_client.answer(), "RTSP/1.0 400 Bad Request\r\n\r\n");
  EXPECT_TRUE(bad_client.proxy.over());

  Trial bad_server;
  bad_server.set_up();
  bad_server.client(test::ffmpeg_play);
  EXPECT_EQ(bad_server.server("\x01\x02\r\n\r\n"),
            "RTSP/1.0 502 Bad Gateway\r\nCSeq: 5\r\nSession: fwZMuBoktkKvhvLA\r\n\r\n");
  EXPECT_THAT(bad_server.host.ends, ElementsAre("1 protocol"));
  EXPECT_THAT(bad_server.host.refusals, ElementsAre("server_unreadable 502"));
}

// What it refuses of clients it does not offer them.
TEST(Proxy, MethodsThatItRefusesAreNotOffered) {
  const std::pair<std::string, std::string> cases[] = {
      {"Public: DESCRIBE,RECORD\r\nX: y\r\n", "Public: DESCRIBE\r\nX: y\r\n"},
      {"Public:  PLAY ,SETUP\r\n", "Public:  PLAY ,SETUP\r\n"},
      {"allow: OPTIONS\r\nAllow: ANNOUNCE, PLAY\r\n", "Allow: OPTIONS, PLAY\r\n"},
      {"Public: RECORDER, announce\r\n", "Public: RECORDER, announce\r\n"},
  };
  for (const auto& [sent, passed] : cases) {
    Trial trial;
    trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
    EXPECT_EQ(trial.server("RTSP/1.0 405 No\r\nCSeq: 1\r\n" + sent + "\r\n"),
              "RTSP/1.0 405 No\r\nCSeq: 1\r\n" + passed + "\r\n");
  }
}

TEST(Proxy, InterleavedFramesAreDropped) {
  Trial trial;
  const std::string frame("$\0\0\2ab", 6);
  EXPECT_EQ(trial.client(frame + std::string(test::ffmpeg_options)), test::ffmpeg_options);
  EXPECT_EQ(trial.server(frame + std::string(test::gst_options_answer)), test::gst_options_passed);
  EXPECT_EQ(trial.proxy.counters().interleaved_dropped, 2U);
}

TEST(Proxy, RequestsOfTheServer) {
  Trial trial;
  const std::string options = "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n";
  EXPECT_EQ(trial.server(options), options);
  const std::string answer = "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n";
  EXPECT_EQ(trial.client(answer), answer);
  EXPECT_EQ(trial.client(answer), "") << "asked once";
  EXPECT_EQ(trial.proxy.counters().unmatched_responses, 1U);
  EXPECT_EQ(
      trial.server("ANNOUNCE * RTSP/1.0\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Length: 3\r\n\r\nv=0"),
      "");
  EXPECT_EQ(Trial::taken(trial.proxy.to_server()), "RTSP/1.0 501 Not Implemented\r\nCSeq: 2\r\n\r\n");
  EXPECT_THAT(trial.host.refusals, ElementsAre("description_body 501"));
}

TEST(Proxy, NamesAreComplete) {
  for (unsigned i = 0; i < refusals; ++i) {
    EXPECT_TRUE(is_name(refusal_name(static_cast<Refusal>(i)))) << "of a metric: " << i;
    EXPECT_NE(status_text(refusal_status(static_cast<Refusal>(i))), "Error") << i;
  }
  for (unsigned i = 0; i < end_reasons; ++i) EXPECT_TRUE(is_name(end_reason_name(static_cast<EndReason>(i)))) << i;
  for (unsigned i = 0; i < omissions; ++i) EXPECT_TRUE(is_name(omission_name(static_cast<Omission>(i)))) << i;
  for (unsigned i = 1; i < problems; ++i) {
    EXPECT_NE(status_text(problem_status(static_cast<Problem>(i))), "Error") << i;
  }
  EXPECT_STREQ(refusal_name(Refusal::server_unreadable), "server_unreadable");
  EXPECT_STREQ(end_reason_name(EndReason::stopped), "stopped");
}

}  // namespace
}  // namespace sluice::media::rtsp
