#include "media/rtsp/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "media/rtsp/peers_test.h"
#include "media/rtsp/proxy_text.h"
#include "media/sdp/crypto_attribute.h"

namespace sluice::media::rtsp {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Recorder final : Host {
  Admission admit(const StreamRequest& request) override {
    admitted.push_back(request.number);
    rates.push_back(request.rate);
    return answer;
  }
  bool opened(const Stream& stream) override {
    streams.push_back(stream);
    return opens;
  }
  void closed(std::uint64_t number, EndReason reason) override {
    ends.push_back(std::to_string(number) + ' ' + end_reason_name(reason));
  }
  void refused(Refusal refusal, unsigned status, std::string_view why) override {
    refusals.push_back(std::string(refusal_name(refusal)) + ' ' + std::to_string(status));
    reasons.emplace_back(why);
  }

  Admission answer;
  bool opens = true;
  std::vector<std::uint64_t> admitted, rates;
  std::vector<Stream> streams;
  std::vector<std::string> ends, refusals, reasons;
};

// Bytes that count up, from one call to the next too.
RandomSource counting() {
  return [next = std::uint8_t{0}](std::span<std::uint8_t> bytes) mutable -> Expected<void> {
    for (std::uint8_t& byte : bytes) {
      byte = next++;
    }
    return {};
  };
}

packet::IpAddress address(std::string_view text) {
  return *packet::IpAddress::parse(text);
}

Addresses transparent() {
  Addresses addresses;
  addresses.client = address("10.9.0.2");
  addresses.server = address("10.9.0.1");
  return addresses;
}

struct Trial {
  explicit Trial(Settings settings = {}, Addresses addresses = transparent())
      : proxy(settings, std::move(addresses), host, counting()) {}

  // What the other side gets.
  std::string client(std::string_view text, std::size_t piece = std::string::npos) {
    for (std::size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at)) {
      proxy.from_client(text.substr(at, piece), now);
    }
    return taken(proxy.to_server());
  }
  std::string server(std::string_view text, std::size_t piece = std::string::npos) {
    for (std::size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at)) {
      proxy.from_server(text.substr(at, piece), now);
    }
    return taken(proxy.to_client());
  }
  static std::string taken(SecretText& out) {
    std::string text(out.view());
    out.clear();
    return text;
  }
  std::string answer() { return taken(proxy.to_client()); }

  // A description from the server, offered to the client.
  void describe(const std::string& description = test::gst_description()) {
    client(test::ffmpeg_describe);
    server(test::with_body(test::gst_describe_head, description));
  }
  // Video is playing.
  void set_up() {
    describe();
    client(test::ffmpeg_setup_video);
    server(test::gst_setup_video_answer);
  }

  Time now = Time{} + 1000s;
  Recorder host;
  Proxy proxy;
};

std::string setup(std::string_view transport, std::string_view more = "", unsigned cseq = 3) {
  return "SETUP rtsp://10.9.0.1:8554/plain/stream=0 RTSP/1.0\r\nCSeq: " + std::to_string(cseq) +
         "\r\nTransport: " + std::string(transport) + "\r\n" + std::string(more) + "\r\n";
}

std::string setup_answer(std::string_view transport, std::string_view session = "Session: s1\r\n") {
  return "RTSP/1.0 200 OK\r\nCSeq: 3\r\nTransport: " + std::string(transport) + "\r\n" + std::string(session) + "\r\n";
}

const std::string good_answer = "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001";

// Everything that ffmpeg and the server say, whole and in pieces.
TEST(Proxy, FfmpegPlaysAndLeaves) {
  for (const std::size_t piece : {std::string::npos, std::size_t{1}, std::size_t{17}}) {
    Trial trial;
    EXPECT_EQ(trial.client(test::ffmpeg_options, piece), test::ffmpeg_options);
    EXPECT_EQ(trial.server(test::gst_options_answer, piece), test::gst_options_answer);
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

TEST(Proxy, RtspsrcBringsItsKey) {
  Trial trial;
  trial.describe();
  const std::string forwarded = trial.client(test::rtspsrc_setup_video);
  EXPECT_THAT(forwarded, HasSubstr("Transport: RTP/AVP;unicast;client_port=12322-12323\r\n"));
  EXPECT_THAT(forwarded, Not(HasSubstr("KeyMgmt")));
  EXPECT_THAT(forwarded, Not(HasSubstr("4H2Dw3")));
  EXPECT_THAT(trial.server(test::gst_setup_video_answer), HasSubstr("Transport: RTP/SAVP;unicast;client_port=12322"));
  const Stream& stream = trial.host.streams.at(0);
  EXPECT_FALSE(stream.plain_profile);
  ASSERT_TRUE(stream.from_client);
  EXPECT_EQ(base64_encode(stream.from_client->key.bytes()).view(), test::rtspsrc_key);
}

// What a SETUP may ask for, what the server then hears, what it answers and what the client hears.
TEST(Proxy, TransportsBothWays) {
  struct Case {
    std::string_view asked, forwarded, answered, told;
    bool plain;
  };
  for (const Case& one : {
           Case{"RTP/AVP;unicast;client_port=5000-5001", "RTP/AVP;unicast;client_port=5000-5001",
                "RTP/AVP/UDP;unicast;client_port=5000-5001;server_port=6000-6001",
                "RTP/AVP/UDP;unicast;client_port=5000-5001;server_port=6000-6001", true},
           Case{"RTP/SAVP/UDP;unicast;client_port=5000-5001;mode=play",
                "RTP/AVP/UDP;unicast;client_port=5000-5001;mode=play", "RTP/AVP;unicast;server_port=6000-6001;ssrc=1",
                "RTP/SAVP;unicast;server_port=6000-6001;ssrc=1", false},
           Case{"RTP/SAVPF;unicast;client_port=5000-5001,RTP/SAVP;unicast;client_port=5000-5001",
                "RTP/AVPF;unicast;client_port=5000-5001,RTP/AVP;unicast;client_port=5000-5001",
                "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001",
                "RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-6001", false},
           Case{"RTP/SAVP/TCP;interleaved=0-1,RTP/SAVP;multicast,RTP/SAVP;client_port=5000", "RTP/AVP;client_port=5000",
                "RTP/AVP;unicast;client_port=5000-5001;server_port=6000",
                "RTP/SAVP;unicast;client_port=5000-5001;server_port=6000", false},
           Case{"RTP/SAVP;unicast;client_port=5000-5001,RTP/AVP;unicast;client_port=7000-7001",
                "RTP/AVP;unicast;client_port=5000-5001",
                "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001;source=10.9.0.1;destination=10.9.0.2",
                "RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-6001;source=10.9.0.1;destination=10.9.0.2",
                false},
           Case{"RTP/SAVP;unicast;destination=10.9.0.2;client_port=5000-5001",
                "RTP/AVP;unicast;destination=10.9.0.2;client_port=5000-5001",
                "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001;source=10.9.0.77",
                "RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-6001;source=10.9.0.77", false},
       }) {
    Trial trial;
    trial.describe();
    EXPECT_EQ(trial.client(setup(one.asked)), setup(one.forwarded)) << one.asked;
    EXPECT_EQ(trial.server(setup_answer(one.answered)), setup_answer(one.told)) << one.asked;
    ASSERT_EQ(trial.host.streams.size(), 1U) << one.asked;
    EXPECT_EQ(trial.host.streams[0].client_side.client_ports, (PortPair{5000, 5001}));
    EXPECT_EQ(trial.host.streams[0].client_side.server_ports, (PortPair{6000, 6001}));
    EXPECT_EQ(trial.host.streams[0].plain_profile, one.plain) << one.asked;
  }
}

TEST(Proxy, RefusesSetup) {
  struct Case {
    std::string request;
    std::string_view refusal;
    bool accept_plain = true;
  };
  const std::string_view good = "RTP/SAVP;unicast;client_port=5000-5001";
  for (const Case& one : {
           Case{setup("RTP/AVP/TCP;unicast;interleaved=0-1"), "interleaved 461"},
           Case{setup("RTP/AVP;unicast;interleaved=0-1"), "interleaved 461"},
           Case{setup("RTP/AVP;multicast;client_port=5000-5001"), "multicast 461"},
           Case{setup("RTP/AVP;unicast"), "unusable_transport 461"},
           Case{setup("RTP/AVP;unicast;client_port=0-1"), "unusable_transport 461"},
           Case{setup("MP2T/H2221/UDP;unicast;client_port=5000-5001"), "unusable_transport 461"},
           Case{setup("RTP/AVP/SCTP;unicast;client_port=5000-5001"), "unusable_transport 461"},
           Case{setup("RTP/AVP;unicast;client_port=5000-5001;mode=record"), "unusable_transport 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;destination=10.9.0.3"), "destination 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;destination=host"), "destination 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;destination"), "destination 461"},
           Case{setup("RTP/AVP;unicast;client_port=5000-5001"), "plain_profile 461", false},
           Case{setup("RTP/AVP;unicast;a=1;a=2"), "transport 400"},
           Case{setup(""), "transport 400"},
           Case{setup(good, "KeyMgmt: prot=mikey;data=\"AQ==\"\r\n"), "key_mgmt 400"},
           Case{setup(good, "KeyMgmt: prot=mikey;data=\"?\"\r\n"), "key_mgmt 400"},
           Case{"SETUP rtsp://10.9.0.1:8554/plain/other RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/SAVP\r\n\r\n",
                "no_offer 455"},
           Case{setup(good, "Proxy-Require: x\r\n"), "proxy_require 551"},
           Case{setup(good, "Content-Type: application/sdp\r\nContent-Length: 3\r\n") + "v=0", "description_body 501"},
           Case{"ANNOUNCE rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nCSeq: 3\r\n\r\n", "method 501"},
           Case{"RECORD rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nCSeq: 3\r\n\r\n", "method 501"},
           Case{"OPTIONS * RTSP/2.0\r\nCSeq: 3\r\n\r\n", "version 505"},
           Case{"OPTIONS * RTSP/1.0\r\nCSeq: x\r\n\r\n", "cseq 400"},
           Case{"OPTIONS * RTSP/1.0\r\n\r\n", "cseq 400"},
           Case{"OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nCSeq: 4\r\n\r\n", "cseq 400"},
           Case{"GET / HTTP/1.1\r\n\r\n", "unreadable 505"},
           Case{"OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nbad\r\n\r\n", "unreadable 400"},
       }) {
    Settings settings;
    settings.accept_plain_profile = one.accept_plain;
    Trial trial(settings);
    trial.describe();
    EXPECT_EQ(trial.client(one.request), "") << one.request;
    EXPECT_THAT(trial.host.refusals, ElementsAre(one.refusal)) << one.request;
    EXPECT_THAT(trial.answer(), HasSubstr(one.refusal.substr(one.refusal.find(' ') + 1))) << one.request;
    EXPECT_THAT(trial.host.streams, IsEmpty());
    EXPECT_THAT(trial.host.ends, IsEmpty());
  }
}

TEST(Proxy, SetupWithoutDescription) {
  Trial trial;
  EXPECT_EQ(trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001")), "");
  EXPECT_EQ(trial.answer(), "RTSP/1.0 455 Method Not Valid in This State\r\nCSeq: 3\r\n\r\n");
}

TEST(Proxy, AdmissionSaysNo) {
  Trial trial;
  trial.describe();
  trial.host.answer.admitted = false;
  EXPECT_EQ(trial.client(test::ffmpeg_setup_video), "");
  EXPECT_EQ(trial.answer(), "RTSP/1.0 453 Not Enough Bandwidth\r\nCSeq: 3\r\n\r\n");
  EXPECT_THAT(trial.host.rates, ElementsAre(2'097'000U));
  EXPECT_THAT(trial.host.ends, IsEmpty());
  trial.host.answer.admitted = true;  // the key is still good
  EXPECT_EQ(trial.client(test::ffmpeg_setup_video), test::ffmpeg_setup_video);
}

TEST(Proxy, TheServerRefusesThenAgrees) {
  Trial trial;
  trial.describe();
  trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001"));
  const std::string no =
      "RTSP/1.0 401 Unauthorized\r\nCSeq: 3\r\nWWW-Authenticate: Digest realm=\"x\", nonce=\"y\"\r\n\r\n";
  EXPECT_EQ(trial.server(no), no);
  EXPECT_THAT(trial.host.ends, ElementsAre("1 setup_failed"));
  const std::string credentials = "Authorization: Digest username=\"u\", response=\"r\"\r\n";
  EXPECT_THAT(trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001", credentials)), HasSubstr(credentials));
  trial.server(setup_answer(good_answer));
  EXPECT_THAT(trial.host.admitted, ElementsAre(1U, 2U));
  EXPECT_EQ(trial.host.streams.size(), 1U);
}

TEST(Proxy, ServersAnswersThatCannotBeUsed) {
  const std::pair<std::string, std::string_view> cases[] = {
      {setup_answer(good_answer, ""), "Session"},
      {setup_answer(good_answer, "Session: " + std::string(257, 's') + "\r\n"), "Session"},
      {setup_answer(""), "Transport: it is empty"},
      {setup_answer("RTP/AVP;unicast;client_port=5000-5001"), "no server_port"},
      {setup_answer("RTP/AVPF;unicast;client_port=5000-5001;server_port=6000-6001"), "none of those"},
      {setup_answer("RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-6001"), "none of those"},
      {setup_answer("RTP/AVP/TCP;interleaved=0-1"), "none of those"},
      {setup_answer("RTP/AVP;multicast;port=1-2"), "none of those"},
      {setup_answer(good_answer + "," + good_answer), "none of those"},
      {setup_answer("RTP/AVP;unicast;client_port=7000-7001;server_port=6000-6001"), "another client_port"},
      {setup_answer(good_answer + ";source=host"), "no address"},
      {setup_answer(good_answer + ";source=2001:db8::1"), "no address"},
      {setup_answer(good_answer + ";destination=10.9.0.3"), "another destination"},
  };
  for (const auto& [answer, why] : cases) {
    Trial trial;
    trial.describe();
    trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001"));
    EXPECT_EQ(trial.server(answer), "RTSP/1.0 502 Bad Gateway\r\nCSeq: 3\r\n\r\n");
    EXPECT_THAT(trial.host.refusals, ElementsAre("setup_answer 502"));
    EXPECT_THAT(trial.host.reasons.at(0), HasSubstr(why));
    EXPECT_THAT(trial.host.ends, ElementsAre("1 setup_failed"));
    EXPECT_THAT(trial.host.streams, IsEmpty());
    const bool known = answer.find("Session: s1") != std::string::npos;
    EXPECT_EQ(Trial::taken(trial.proxy.to_server()),
              known ? "TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\nCSeq: 1000000000\r\nSession: s1\r\n\r\n" : "");
  }
}

TEST(Proxy, OpenedSaysNo) {
  Trial trial;
  trial.host.opens = false;
  trial.describe();
  trial.client(test::ffmpeg_setup_video);
  EXPECT_EQ(trial.server(test::gst_setup_video_answer), "RTSP/1.0 500 Internal Server Error\r\nCSeq: 3\r\n\r\n");
  EXPECT_THAT(trial.host.ends, ElementsAre("1 not_opened"));
  EXPECT_THAT(Trial::taken(trial.proxy.to_server()), HasSubstr("TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0"));
  EXPECT_EQ(trial.server("RTSP/1.0 200 OK\r\nCSeq: 1000000000\r\n\r\n"), "") << "the proxy's own";
  EXPECT_EQ(trial.proxy.counters().stray_responses, 0U);
}

TEST(Proxy, AKeyServesOneSetup) {
  Trial trial;
  trial.set_up();
  EXPECT_EQ(trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001", "", 4)), "");
  EXPECT_THAT(trial.host.refusals, ElementsAre("key_used 455"));
  trial.client("TEARDOWN rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nCSeq: 6\r\nSession: fwZMuBoktkKvhvLA\r\n\r\n");
  trial.server(test::gst_teardown_answer);
  trial.answer();
  EXPECT_EQ(trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001", "", 7)), "");
  EXPECT_THAT(trial.host.refusals, ElementsAre("key_used 455", "key_used 455"));
  trial.describe();
  EXPECT_NE(trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001")), "");
  trial.server(setup_answer(good_answer));
  ASSERT_EQ(trial.host.streams.size(), 2U);
  EXPECT_FALSE(trial.host.streams[0].to_client == trial.host.streams[1].to_client);
}

TEST(Proxy, DescriptionsThatCannotBeProtected) {
  const auto answer_of = [](std::string_view headers, std::string_view body) {
    return test::with_body("RTSP/1.0 200 OK\r\nCSeq: 2\r\n" + std::string(headers), body);
  };
  const std::string sdp_type = "Content-Type: application/sdp;charset=utf-8\r\n";
  const std::pair<std::string, std::string_view> cases[] = {
      {answer_of("Content-Type: text/plain\r\n", "v=0\r\n"), "not application/sdp"},
      {answer_of("", "v=0\r\n"), "not application/sdp"},
      {answer_of(sdp_type + "Content-Encoding: gzip\r\n", "v=0\r\n"), "packed"},
      {answer_of(sdp_type, "x=0\r\n"), "line 1"},
      {answer_of(sdp_type, "v=0\r\nm=video 0 RTP/SAVP 96\r\n"), "'RTP/SAVP' cannot be protected"},
      {answer_of(sdp_type, "v=0\r\nm=video 0 RTP/AVP 96\r\nm=video 0 udp 33\r\n"), "'udp' cannot be protected"},
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

TEST(Proxy, DescribeAsksForNothingPacked) {
  Trial trial;
  const std::string_view start = "DESCRIBE * RTSP/1.0\r\nCSeq: 1\r\n";
  EXPECT_EQ(trial.client(std::string(start) + "Accept-Encoding: gzip\r\nA: b\r\n\r\n"),
            std::string(start) + "A: b\r\n\r\n");
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
  EXPECT_EQ(trial.proxy.counters().stray_responses, 2U);
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
  EXPECT_TRUE(trial.proxy.wants_server());
  trial.proxy.to_server().clear();
  EXPECT_TRUE(trial.proxy.wants_client());
  trial.proxy.from_server(test::gst_options_answer, trial.now);
  EXPECT_FALSE(trial.proxy.wants_server());
}

TEST(Proxy, StreamsAreBounded) {
  Settings settings;
  settings.max_streams = 1;
  Trial trial(settings);
  trial.set_up();
  EXPECT_EQ(trial.client(test::ffmpeg_setup_audio), "");
  EXPECT_THAT(trial.host.refusals, ElementsAre("too_many_streams 453"));
  EXPECT_THAT(trial.host.admitted, ElementsAre(1U));
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
                          Case{"Session: s1 ; x=1; Timeout = 30\r\n", 40s}, Case{"Session: s1;timeout=x\r\n", 70s}}) {
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

TEST(Proxy, ConnectionsEnd) {
  for (const bool client : {true, false}) {
    Trial trial;
    trial.set_up();
    trial.client(test::ffmpeg_setup_audio);
    client ? trial.proxy.client_closed() : trial.proxy.server_closed();
    EXPECT_TRUE(trial.proxy.over());
    EXPECT_FALSE(trial.proxy.wants_client() || trial.proxy.wants_server());
    const std::string reason = client ? " client_gone" : " server_gone";
    EXPECT_THAT(trial.host.ends, ElementsAre("1" + reason, "2" + reason)) << "the one on its way, too";
    const std::string last(trial.proxy.to_server().view());
    EXPECT_EQ(last.starts_with("TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\n"), client);
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

TEST(Proxy, InterleavedFramesAreDropped) {
  Trial trial;
  const std::string frame("$\0\0\2ab", 6);
  EXPECT_EQ(trial.client(frame + std::string(test::ffmpeg_options)), test::ffmpeg_options);
  EXPECT_EQ(trial.server(frame + std::string(test::gst_options_answer)), test::gst_options_answer);
  EXPECT_EQ(trial.proxy.counters().interleaved_dropped, 2U);
}

TEST(Proxy, RequestsOfTheServer) {
  Trial trial;
  const std::string options = "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n";
  EXPECT_EQ(trial.server(options), options);
  const std::string answer = "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n";
  EXPECT_EQ(trial.client(answer), answer);
  EXPECT_EQ(trial.client(answer), "") << "asked once";
  EXPECT_EQ(trial.proxy.counters().stray_responses, 1U);
  EXPECT_EQ(
      trial.server("ANNOUNCE * RTSP/1.0\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Length: 3\r\n\r\nv=0"),
      "");
  EXPECT_EQ(Trial::taken(trial.proxy.to_server()), "RTSP/1.0 501 Not Implemented\r\nCSeq: 2\r\n\r\n");
  EXPECT_THAT(trial.host.refusals, ElementsAre("description_body 501"));
}

// A client of an explicit proxy knows the proxy's address alone.
TEST(Proxy, Explicit) {
  Addresses addresses = transparent();
  addresses.facing_client = address("10.8.0.7");
  addresses.facing_server = address("10.9.0.7");
  addresses.client_authority = "10.8.0.7:554";
  addresses.server_authority = "10.9.0.1:8554";
  Trial trial({}, addresses);
  trial.host.answer.towards_server = PortPair{20000, 20001};
  trial.host.answer.towards_client = PortPair{30000, 30001};
  const std::string head = "DESCRIBE rtsp://10.8.0.7:554/a RTSP/1.0\r\nCSeq: 2\r\n\r\n";
  EXPECT_EQ(trial.client(head), "DESCRIBE rtsp://10.9.0.1:8554/a RTSP/1.0\r\nCSeq: 2\r\n\r\n");
  const std::string described = trial.server(test::with_body(
      "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Base: rtsp://10.9.0.1:8554/a/\r\n",
      "v=0\r\na=control:rtsp://10.9.0.1:8554/a/\r\nm=audio 0 RTP/AVP 8\r\na=control:rtsp://10.9.0.1:8554/a/t1\r\n"));
  EXPECT_THAT(described, HasSubstr("Content-Base: rtsp://10.8.0.7:554/a/\r\n"));
  EXPECT_THAT(described, HasSubstr("a=control:rtsp://10.8.0.7:554/a/t1\r\n"));
  EXPECT_THAT(described, Not(HasSubstr("10.9.0.1")));
  const auto request = [](std::string_view host, std::string_view transport) {
    return "SETUP rtsp://" + std::string(host) + "/a/t1 RTSP/1.0\r\nCSeq: 3\r\nTransport: " + std::string(transport) +
           "\r\n\r\n";
  };
  EXPECT_EQ(trial.client(request("10.8.0.7:554", "RTP/SAVP;unicast;destination=10.9.0.2;client_port=5000-5001")),
            request("10.9.0.1:8554", "RTP/AVP;unicast;destination=10.9.0.7;client_port=20000-20001"));
  EXPECT_EQ(trial.server(setup_answer("RTP/AVP;unicast;source=10.9.0.1;destination=10.9.0.7;client_port=20000-20001;"
                                      "server_port=6000-6001")),
            setup_answer("RTP/SAVP;unicast;source=10.8.0.7;destination=10.9.0.2;client_port=5000-5001;"
                         "server_port=30000-30001"));
  const Stream& stream = trial.host.streams.at(0);
  EXPECT_EQ(stream.client_side.client.str(), "10.9.0.2");
  EXPECT_EQ(stream.client_side.client_ports, (PortPair{5000, 5001}));
  EXPECT_EQ(stream.client_side.server.str(), "10.8.0.7");
  EXPECT_EQ(stream.client_side.server_ports, (PortPair{30000, 30001}));
  EXPECT_EQ(stream.server_side.client.str(), "10.9.0.7");
  EXPECT_EQ(stream.server_side.client_ports, (PortPair{20000, 20001}));
  EXPECT_EQ(stream.server_side.server.str(), "10.9.0.1");
  EXPECT_EQ(stream.server_side.server_ports, (PortPair{6000, 6001}));
  trial.client("PLAY rtsp://10.8.0.7:554/a/ RTSP/1.0\r\nCSeq: 4\r\nSession: s1\r\n\r\n");
  EXPECT_EQ(
      trial.server("RTSP/1.0 200 OK\r\nCSeq: 4\r\nRTP-Info: url=rtsp://10.9.0.1:8554/a/t1;seq=1, url=b;seq=2\r\n\r\n"),
      "RTSP/1.0 200 OK\r\nCSeq: 4\r\nRTP-Info: url=rtsp://10.8.0.7:554/a/t1;seq=1,url=b;seq=2\r\n\r\n");
  trial.proxy.client_closed();
  EXPECT_THAT(Trial::taken(trial.proxy.to_server()), HasSubstr("TEARDOWN rtsp://10.9.0.1:8554/a/ RTSP/1.0\r\n"));
}

TEST(Proxy, Ipv6) {
  Addresses addresses;
  addresses.client = address("2001:db8::2");
  addresses.server = address("2001:db8::1");
  Trial trial({}, addresses);
  trial.client("DESCRIBE rtsp://[2001:db8::1]:8554/a RTSP/1.0\r\nCSeq: 2\r\n\r\n");
  trial.server(test::with_body(
      "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\n",
      "v=0\r\nc=IN IP6 ::\r\nm=audio 0 RTP/AVP 8\r\nb=TIAS:64000\r\na=maxprate:50\r\na=control:t1\r\n"));
  const std::string request =
      "SETUP rtsp://[2001:db8::1]:8554/a/t1 RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/AVP;unicast;"
      "destination=2001:db8:0::2;client_port=5000-5001\r\n\r\n";
  EXPECT_EQ(trial.client(request), request);
  trial.server(setup_answer(good_answer + ";source=2001:db8::9"));
  ASSERT_EQ(trial.host.streams.size(), 1U);
  EXPECT_EQ(trial.host.streams[0].server_side.server.str(), "2001:db8::9");
  EXPECT_THAT(trial.host.rates, ElementsAre(88'000U));
}

TEST(Proxy, NamesAreComplete) {
  for (unsigned i = 0; i < refusals; ++i) {
    EXPECT_STRNE(refusal_name(static_cast<Refusal>(i)), "");
    EXPECT_NE(status_text(refusal_status(static_cast<Refusal>(i))), "Error") << i;
  }
  for (unsigned i = 1; i < problems; ++i) {
    EXPECT_NE(status_text(problem_status(static_cast<Problem>(i))), "Error") << i;
  }
  EXPECT_STREQ(refusal_name(Refusal::server_unreadable), "server_unreadable");
  EXPECT_STREQ(end_reason_name(EndReason::stopped), "stopped");
}

}  // namespace
}  // namespace sluice::media::rtsp
