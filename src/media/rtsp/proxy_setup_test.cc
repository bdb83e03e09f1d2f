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
using ::testing::Not;

// With a key derivation rate of 2^`rate`.
std::string key_mgmt(unsigned rate) {
  mikey::Message message;
  message.key = MasterKey(std::vector<std::uint8_t>(30, 7));
  message.derivation_rate = rate;
  const SecretBytes bytes = mikey::write(message, std::array<std::uint8_t, 16>{});
  return "KeyMgmt: prot=mikey;data=\"" + std::string(base64_encode(bytes).view()) + "\"\r\n";
}

TEST(ProxySetup, KeysThatAreDerivedAnewAreNoClients) {
  for (const unsigned rate : {0U, 1U}) {
    Trial trial;
    trial.describe();
    const std::string request = setup("RTP/SAVP;unicast;client_port=5000-5001", key_mgmt(rate));
    EXPECT_EQ(trial.client(request).empty(), rate != 0) << rate;
  }
}

TEST(ProxySetup, RtspsrcBringsItsKey) {
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
TEST(ProxySetup, TransportsBothWays) {
  struct Case {
    std::string_view asked, forwarded, answered, reported;
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
                "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001",
                "RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-6001", false},
           Case{"RTP/SAVP;unicast;client_port=5000-5001;destination;source=", "RTP/AVP;unicast;client_port=5000-5001",
                "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001;source=;destination=0.0.0.0",
                "RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-6001", false},
           Case{",RTP/SAVP;;unicast; client_port = 5000 - 5001 ;mode=,",
                "RTP/AVP;unicast;client_port=5000 - 5001;mode=",
                " RTP/AVP ; unicast;client_port=5000-5001;server_port=6000-;source=camera.local;ttl=16;x;ssrc=0xZZ;",
                "RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-;ttl=16;x;ssrc=0xZZ", false},
           Case{"RTP/SAVP;unicast;client_port=5000-5001", "RTP/AVP;unicast;client_port=5000-5001",
                "RTP/AVP/TCP;interleaved=0-1,RTP/AVP;server_port=6000-6001;mode=\"PLAY\r\nTransport: RTP/AVP;multicast",
                "RTP/SAVP;server_port=6000-6001;mode=PLAY", false},
           Case{"RTP/SAVP;unicast;client_port=5000-5001", "RTP/AVP;unicast;client_port=5000-5001",
                "RTP/AVP;server_port=7000-7001;server_port=6000-6001;client_port=5000-5001",
                "RTP/SAVP;server_port=6000-6001;client_port=5000-5001", false},
           Case{"RTP/SAVP;unicast;client_port=5000-5001", "RTP/AVP;unicast;client_port=5000-5001",
                "RTP/AVP;unicast;client_port=;server_port=6000-6001", "RTP/SAVP;unicast;server_port=6000-6001", false},
           Case{"RTP/SAVP;unicast;client_port=5000-5001;dest_addr=\"10.9.0.3:5000\",RTP/SAVP;client_port=5000-5001",
                "RTP/AVP;client_port=5000-5001", "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001",
                "RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-6001", false},
       }) {
    Trial trial;
    trial.describe();
    EXPECT_EQ(trial.client(setup(one.asked)), setup(one.forwarded)) << one.asked;
    EXPECT_EQ(trial.server(setup_answer(one.answered)), setup_answer(one.reported)) << one.asked;
    ASSERT_EQ(trial.host.streams.size(), 1U) << one.asked;
    EXPECT_EQ(trial.host.streams[0].client_side.client_ports, (PortPair{5000, 5001}));
    EXPECT_EQ(trial.host.streams[0].client_side.server_ports, (PortPair{6000, 6001}));
    EXPECT_EQ(trial.host.streams[0].plain_profile, one.plain) << one.asked;
  }
}

TEST(ProxySetup, RefusesSetup) {
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
           Case{setup("RTP/AVP;unicast;client_port=1000-1001"), "unusable_transport 461"},
           Case{setup("RTP/AVP;unicast;client_port=1023-1024"), "unusable_transport 461"},
           Case{setup("RTP/AVP;unicast;client_port=1024-1023"), "unusable_transport 461"},
           Case{setup("MP2T/H2221/UDP;unicast;client_port=5000-5001"), "unusable_transport 461"},
           Case{setup("RTP/AVP/SCTP;unicast;client_port=5000-5001"), "unusable_transport 461"},
           Case{setup("RTP/AVP;unicast;client_port=5000-5001;mode=record"), "unusable_transport 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;destination=10.9.0.3"), "destination 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;destination=host"), "destination 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;destination=10.9.0.2;destination=10.9.0.3"),
                "destination 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;dest_addr=\"10.9.0.3:5000\""), "destination 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;Dest_Addr=\":5000\"/\":5001\""), "destination 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;src_addr=\"10.9.0.3:5000\""), "destination 461"},
           Case{setup("RTP/SAVP;unicast;client_port=5000-5001;source=10.9.0.1"), "destination 461"},
           Case{setup("RTP/AVP;unicast;client_port=5000-5001"), "plain_profile 461", false},
           Case{setup("client_port=5000-5001;unicast"), "transport 400"},
           Case{setup(""), "transport 400"},
           Case{setup(good, "KeyMgmt: prot=mikey;data=\"AQ==\"\r\n"), "key_mgmt 400"},
           Case{setup(good, "KeyMgmt: prot=mikey;data=\"?\"\r\n"), "key_mgmt 400"},
           Case{setup(good, key_mgmt(10)), "key_mgmt 400"},
           Case{"SETUP rtsp://10.9.0.1:8554/plain/other RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/SAVP\r\n\r\n",
                "no_offer 455"},
           Case{setup(good, "Proxy-Require: x\r\n"), "proxy_require 551"},
           Case{setup(good, "Require: www.onvif.org/ver20/backchannel\r\n"), "back_channel 551"},
           Case{"DESCRIBE rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nCSeq: 3\r\nRequire: a, "
                "WWW.onvif.org/ver20/backchannel\r\n\r\n",
                "back_channel 551"},
           Case{setup(good, "Content-Type: application/sdp\r\nContent-Length: 3\r\n") + "v=0", "description_body 501"},
           Case{"ANNOUNCE rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nCSeq: 3\r\n\r\n", "method 501"},
           Case{"RECORD rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nCSeq: 3\r\n\r\n", "method 501"},
           Case{"OPTIONS * RTSP/2.0\r\nCSeq: 3\r\n\r\n", "version 505"},
           Case{"OPTIONS * RTSP/1.0\r\nCSeq: x\r\n\r\n", "cseq 400"},
           Case{"setup rtsp://10.0.0.9/film/t1 RTSP/1.0\r\nCSeq: 3\r\nTransport: "
                "RTP/AVP;unicast;client_port=4-5\r\n\r\n",
                "method 501"},
           Case{"Play rtsp://10.0.0.9/film RTSP/1.0\r\nCSeq: 3\r\n\r\n", "method 501"},
           Case{"OPTIONS * RTSP/1.0\r\n\r\n", "cseq 400"},
           Case{"OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nCSeq: 4\r\n\r\n", "cseq 400"},
           Case{"GET / HTTP/1.1\r\n\r\n", "unreadable 505"},
           Case{"OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nContent-Length 3\r\n\r\n", "unreadable 400"},
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

TEST(ProxySetup, SetupWithoutDescription) {
  Trial trial;
  EXPECT_EQ(trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001")), "");
  EXPECT_EQ(trial.answer(), "RTSP/1.0 455 Method Not Valid in This State\r\nCSeq: 3\r\n\r\n");
}

TEST(ProxySetup, AdmissionSaysNo) {
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

TEST(ProxySetup, TheServerRefusesThenAgrees) {
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

TEST(ProxySetup, ServersAnswersThatCannotBeUsed) {
  const std::pair<std::string, std::string_view> cases[] = {
      {setup_answer(good_answer, "Session: " + std::string(513, 's') + "\r\n"), "Session"},
      {setup_answer(""), "Transport: it is empty"},
      {setup_answer("RTP/AVP;unicast;client_port=5000-5001"), "no server_port"},
      {setup_answer("RTP/AVP;unicast;client_port=5000-5001;server_port=1000-1001"), "a server_port below 1024"},
      {setup_answer("RTP/AVP;unicast;client_port=5000-5001;server_port=1023-1024"), "a server_port below 1024"},
      {setup_answer("RTP/SAVP;unicast;client_port=5000-5001;server_port=6000-6001"), "none of those"},
      {setup_answer("RTP/AVP/TCP;interleaved=0-1"), "none of those"},
      {setup_answer("RTP/AVP;multicast;port=1-2"), "none of those"},
      {setup_answer("RTP/AVP/TCP;interleaved=0-1,RTP/AVP;multicast;port=1-2"), "none of those"},
      {setup_answer("RTP/AVP;unicast;client_port=5000-5001;server_port=70000"), "no server_port"},
      {setup_answer(good_answer + ";source=2001:db8::1"), "another source"},
      {setup_answer(good_answer + ";source=10.9.0.77"),
       "its Transport has another source, 10.9.0.77, than the server, 10.9.0.1: media from there would belong to no "
       "stream. Let the server send from the address that clients connect to, or clients connect to that one"},
      {setup_answer(good_answer + ";source=10.9.0.1;source=10.9.0.77"), "another source"},
      {setup_answer(good_answer + ";src_addr=\"10.9.0.1:6000\""), "dest_addr or src_addr"},
      {setup_answer(good_answer + ";dest_addr=\"10.9.0.2:5000\""), "dest_addr or src_addr"},
      {setup_answer(good_answer + ";destination=239.1.1.1"), "a group as its destination"},
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

// Players pass over what servers say of the two ends: media come from the server and go where they were asked for.
TEST(ProxySetup, ServersAnswersThatAreCorrected) {
  struct Case {
    std::string answer, written, left_out = "";
  };
  const std::string ports = ";client_port=5000-5001;server_port=6000-6001", good = "RTP/SAVP;unicast" + ports;
  for (const Case& one : {
           Case{"RTP/AVP;unicast" + ports, good},
           Case{"RTP/AVPF;unicast" + ports, good},
           Case{"RTP/AVP/UDP/unicast;unicast" + ports, "RTP/SAVP/UDP/unicast;unicast" + ports},
           Case{"RTP/AVP,unicast,client_port=5000-5001;server_port=6000-6001", good},
           Case{"RTP/AVP;unicast;client_port=5000-5001;server_port=6000/2", good},
           Case{"RTP/AVP;unicast;client_port=5000-5001;server_port=6000-0", good},
           Case{"RTP/AVP;unicast;client_port=7;server_port=6000-6001", "RTP/SAVP;unicast;server_port=6000-6001",
                "another client_port"},
           Case{"RTP/AVP;unicast" + ports + ";destination=(null);source=(null)", good, "another destination"},
           Case{"RTP/AVP;unicast" + ports + ";destination=10.9.0.3", good, "another destination"},
           Case{"RTP/AVP;unicast" + ports + ";destination=10.9.0.2", good + ";destination=10.9.0.2"},
           Case{"RTP/AVP;unicast" + ports + ";source=127.0.0.1", good},
           Case{"RTP/AVP;unicast" + ports + ";destination=;source=::", good},
       }) {
    Trial trial;
    trial.describe();
    trial.client(setup("RTP/SAVP;unicast;client_port=5000-5001"));
    EXPECT_THAT(trial.server(setup_answer(one.answer)), HasSubstr("\r\nTransport: " + one.written + "\r\n"))
        << one.answer;
    ASSERT_EQ(trial.host.streams.size(), 1U) << one.answer;
    EXPECT_EQ(trial.host.streams[0].server_side.server_ports, (PortPair{6000, 6001})) << one.answer;
    EXPECT_EQ(trial.host.omitted.empty(), one.left_out.empty()) << one.answer;
    if (!one.left_out.empty()) EXPECT_THAT(trial.host.omitted, ElementsAre(HasSubstr(one.left_out)));
  }
}

// The key has protected nothing: the same SETUP may come again.
TEST(ProxySetup, OpenedSaysNo) {
  const struct {
    Opening opens;
    const char *reason, *retry;
  } cases[] = {{Opening::refused, "not_opened", ""}, {Opening::ports_in_use, "ports_in_use", "Retry-After: 5\r\n"}};
  for (const auto& one : cases) {
    Trial trial;
    trial.host.opens = one.opens;
    trial.describe();
    trial.client(test::ffmpeg_setup_video);
    EXPECT_EQ(trial.server(test::gst_setup_video_answer),
              std::string("RTSP/1.0 503 Service Unavailable\r\nCSeq: 3\r\n") + one.retry + "\r\n");
    EXPECT_THAT(trial.host.refusals, ElementsAre(one.reason + std::string(" 503")));
    EXPECT_THAT(trial.host.ends, ElementsAre(std::string("1 ") + one.reason));
    EXPECT_THAT(Trial::taken(trial.proxy.to_server()), HasSubstr("TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0"));
    EXPECT_EQ(trial.server("RTSP/1.0 200 OK\r\nCSeq: 1000000000\r\n\r\n"), "") << "the proxy's own";
    EXPECT_EQ(trial.proxy.counters().unmatched_responses, 0U);
    trial.host.opens = Opening::opened;
    EXPECT_THAT(trial.client(test::ffmpeg_setup_video), HasSubstr("SETUP "));
    EXPECT_THAT(trial.server(test::gst_setup_video_answer), HasSubstr("RTSP/1.0 200 OK"));
    EXPECT_EQ(trial.proxy.open_streams(), 1U);
  }
}

// Of a session that plays only what could not be used.
TEST(ProxySetup, OfAnOlderSessionOneMediumIsTakenBack) {
  for (const bool opens : {true, false}) {
    Trial trial;
    trial.set_up();
    trial.host.opens = Opening::refused;
    trial.client(test::ffmpeg_setup_audio);
    const std::string answer(test::gst_setup_audio_answer);
    const std::string another = "RTSP/1.0 200 OK\r\nCSeq: 4\r\nTransport: RTP/AVP;unicast;server_port=1-2\r\n" +
                                answer.substr(answer.find("Session: "));
    EXPECT_THAT(trial.server(opens ? answer : another), HasSubstr(opens ? "503" : "502"));
    EXPECT_THAT(trial.host.ends, ElementsAre(opens ? "2 not_opened" : "2 setup_failed"));
    EXPECT_EQ(Trial::taken(trial.proxy.to_server()),
              "TEARDOWN rtsp://10.9.0.1:8554/plain/stream=1 RTSP/1.0\r\nCSeq: 1000000000\r\n"
              "Session: fwZMuBoktkKvhvLA\r\n\r\n");
    EXPECT_EQ(trial.proxy.open_streams(), 1U);
  }
}

TEST(ProxySetup, AKeyServesOneSetup) {
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

// A client that hears which option it is asks again without it.
TEST(ProxySetup, OptionsThatAreNotSupportedAreNamed) {
  Trial trial;
  trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nProxy-Require: x\r\n\r\n");
  EXPECT_THAT(trial.answer(), HasSubstr("551 Option not supported\r\nCSeq: 1\r\nUnsupported: x\r\n"));
  trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 2\r\nRequire: www.onvif.org/ver20/backchannel\r\n\r\n");
  EXPECT_THAT(trial.answer(), HasSubstr("Unsupported: www.onvif.org/ver20/backchannel\r\n"));
  EXPECT_NE(trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nRequire: onvif-replay\r\n\r\n"), "");
}

// As GStreamer's server describes a stream that it has in both profiles. Each has a key of its own: it is that of the
// one which is asked for. ffmpeg sets both up, and asks for RTP/AVP both times.
TEST(ProxySetup, OneStreamInTwoProfiles) {
  const std::string both = std::string(test::gst_session)
                               .append(test::gst_video_line)
                               .append(test::gst_video)
                               .append("m=video 0 RTP/AVPF 96\r\n")
                               .append(test::gst_video);
  struct Case {
    std::vector<std::string> asked;
    std::vector<std::size_t> keys;  // places in the description
  };
  for (const Case& one :
       {Case{{"SAVPF", "SAVP"}, {1, 0}}, Case{{"SAVP", "SAVPF"}, {0, 1}}, Case{{"AVP", "AVP"}, {0, 1}}}) {
    Trial trial;
    trial.client(test::ffmpeg_describe);
    const std::string described = trial.server(test::with_body(test::gst_describe_head, both));
    std::vector<std::string> offered;
    for (std::size_t at = 0; (at = described.find("inline:", at)) != std::string::npos; ++at) {
      offered.push_back(described.substr(at + 7, 40));
    }
    ASSERT_EQ(offered.size(), 2U);
    for (std::size_t i = 0; i < one.asked.size(); ++i) {
      const std::string clear = one.asked[i].ends_with('F') ? "RTP/AVPF" : "RTP/AVP";
      trial.client(setup("RTP/" + one.asked[i] + ";unicast;client_port=5000-5001"));
      trial.server(setup_answer(clear + ";unicast;client_port=5000-5001;server_port=6000-6001"));
      ASSERT_EQ(trial.host.streams.size(), i + 1) << one.asked[i];
      EXPECT_EQ(base64_encode(trial.host.streams[i].to_client.bytes()).view(), offered[one.keys[i]]) << one.asked[i];
    }
  }
}

TEST(ProxySetup, StreamsAreBounded) {
  Settings settings;
  settings.max_streams = 1;
  Trial trial(settings);
  trial.set_up();
  EXPECT_EQ(trial.client(test::ffmpeg_setup_audio), "");
  EXPECT_THAT(trial.host.refusals, ElementsAre("too_many_streams 453"));
  EXPECT_THAT(trial.host.admitted, ElementsAre(1U));
}

// A client of an explicit proxy knows the proxy's address alone.
TEST(ProxySetup, Explicit) {
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

Addresses explicit_ones(std::string_view server = "10.9.0.1:554") {
  Addresses addresses = transparent();
  addresses.facing_client = address("10.8.0.7");
  addresses.facing_server = address("10.9.0.7");
  addresses.client_authority = "10.8.0.7:554";
  addresses.server_authority = server;
  return addresses;
}

// Whatever a client calls the proxy, and however the server writes itself.
TEST(ProxySetup, ExplicitByAnyName) {
  struct Case {
    std::string asked, reported, described, returned;
  };
  for (const Case& one : {
           Case{"rtsp://10.8.0.7/a", "rtsp://10.9.0.1:554/a", "rtsp://10.9.0.1/a/", "rtsp://10.8.0.7/a/"},
           Case{"rtsp://proxy.example/a", "rtsp://10.9.0.1:554/a", "rtsp://10.9.0.1:554/a/", "rtsp://proxy.example/a/"},
           Case{"rtsp://me:pw@proxy:554/a", "rtsp://me:pw@10.9.0.1:554/a", "rtsp://10.9.0.1/a/", "rtsp://proxy:554/a/"},
           Case{"rtsp://[2001:db8::7]:554/a", "rtsp://10.9.0.1:554/a", "rtsp://10.9.0.1/a/",
                "rtsp://[2001:db8::7]:554/a/"},
           Case{"rtsp://" + std::string(261, 'h') + "/a", "rtsp://10.9.0.1:554/a", "rtsp://10.9.0.1/a/",
                "rtsp://" + std::string(261, 'h') + "/a/"},
           Case{"rtsp://" + std::string(262, 'h') + "/a", "rtsp://10.9.0.1:554/a", "rtsp://10.9.0.1/a/",
                "rtsp://10.8.0.7:554/a/"},
           Case{"rtsp://h/a", "rtsp://10.9.0.1:554/a", "rtsp://10.9.0.1:8554/a/", "rtsp://h/a/"},
           Case{"rtsp://h/a", "rtsp://10.9.0.1:554/a", "rtsp://camera.local/a/", "rtsp://h/a/"},
           Case{"rtsp://h/a", "rtsp://10.9.0.1:554/a", "RTSP://10.0.0.9:8554/a/", "RTSP://h/a/"},
       }) {
    SCOPED_TRACE(one.asked);
    Trial trial({}, explicit_ones());
    EXPECT_EQ(trial.client("DESCRIBE " + one.asked + " RTSP/1.0\r\nCSeq: 2\r\n\r\n"),
              "DESCRIBE " + one.reported + " RTSP/1.0\r\nCSeq: 2\r\n\r\n");
    const std::string described =
        trial.server(test::with_body("RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Base: " +
                                         one.described + "\r\nContent-Location: " + one.described + "\r\n",
                                     "v=0\r\nm=audio 0 RTP/AVP 8\r\na=control:" + one.described + "t1\r\n"));
    EXPECT_THAT(described, HasSubstr("Content-Base: " + one.returned + "\r\n"));
    EXPECT_THAT(described, HasSubstr("Content-Location: " + one.returned + "\r\n"));
    EXPECT_THAT(described, HasSubstr("a=control:" + one.returned + "t1\r\n"));
    EXPECT_NE(trial.client("SETUP " + one.returned +
                           "t1 RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/AVP;unicast;client_port=5000-5001\r\n\r\n"),
              "");
  }
}

// By whatever name the server knows itself, all that it answers leads to the proxy; what is no URI of RTSP stays.
TEST(ProxySetup, ExplicitServersOfAnotherNameLeadToTheProxy) {
  Trial trial({}, explicit_ones());
  trial.client("DESCRIBE rtsp://proxy/a RTSP/1.0\r\nCSeq: 2\r\n\r\n");
  const std::string described = trial.server(test::with_body(
      "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\n",
      "v=0\r\na=control:rtsp://camera/a/\r\nm=audio 0 RTP/AVP 8\r\na=control:rtsp://10.0.0.9:8554/a/t1\r\n"
      "m=audio 0 RTP/AVP 8\r\na=control: rtsp://camera/a/t2\r\nm=audio 0 RTP/AVP 8\r\na=control://camera/a/t3\r\n"
      "m=audio 0 RTP/AVP 8\r\na=control:rtspu://camera/a/t4\r\n"));
  EXPECT_THAT(described, HasSubstr("a=control:rtsp://proxy/a/\r\n"));
  EXPECT_THAT(described, HasSubstr("a=control:rtsp://proxy/a/t1\r\n"));
  EXPECT_THAT(described, HasSubstr("a=control:rtsp://proxy/a/t2\r\n"));
  EXPECT_THAT(described, HasSubstr("a=control://proxy/a/t3\r\n"));
  EXPECT_THAT(described, HasSubstr("a=control:rtspu://proxy/a/t4\r\n"));
  trial.client("PLAY rtsp://proxy/a RTSP/1.0\r\nCSeq: 4\r\nSession: s1\r\n\r\n");
  EXPECT_EQ(trial.server("RTSP/1.0 200 OK\r\nCSeq: 4\r\nRTP-Info: url=rtsp://camera/a/t1;seq=1\r\n"
                         "RTP-Info: url=http://camera/a/t2;seq=2\r\n\r\n"),
            "RTSP/1.0 200 OK\r\nCSeq: 4\r\nRTP-Info: url=rtsp://proxy/a/t1;seq=1,url=http://camera/a/t2;seq=2\r\n\r\n");
  trial.client("OPTIONS * RTSP/1.0\r\nCSeq: 5\r\n\r\n");
  const std::string elsewhere = "RTSP/1.0 302 Found\r\nCSeq: 5\r\nLocation: rtsp://camera/b\r\n\r\n";
  EXPECT_EQ(trial.server(elsewhere), elsewhere) << "another server's, on another connection";
}

// Controls are relative, and nothing says to what.
TEST(ProxySetup, ExplicitWithoutContentBase) {
  Trial trial({}, explicit_ones());
  trial.host.answer.towards_server = trial.host.answer.towards_client = PortPair{20000, 20001};
  trial.client("DESCRIBE rtsp://proxy/a RTSP/1.0\r\nCSeq: 2\r\n\r\n");
  const std::string described = trial.server(test::with_body(
      "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\n",
      "v=0\r\no=- 1 2 IN IP4 10.9.0.1\r\nc=IN IP4 0.0.0.0\r\nm=audio 0 RTP/AVP 8\r\nc=IN IP4 10.9.0.1\r\n"
      "a=control:t1\r\n"));
  EXPECT_THAT(described, HasSubstr("o=- 1 2 IN IP4 10.8.0.7\r\nc=IN IP4 0.0.0.0\r\n"));
  EXPECT_THAT(described, HasSubstr("c=IN IP4 10.8.0.7\r\na=control:t1\r\n"));
  EXPECT_THAT(trial.client("SETUP rtsp://proxy/a/t1 RTSP/1.0\r\nCSeq: 3\r\n"
                           "Transport: RTP/SAVP;unicast;client_port=5000-5001\r\n\r\n"),
              HasSubstr("SETUP rtsp://10.9.0.1:554/a/t1 RTSP/1.0\r\n"));
  EXPECT_THAT(trial.server(setup_answer("RTP/AVP;unicast;client_port=20000-20001;server_port=6000-6001")),
              HasSubstr("RTP/SAVP;unicast;client_port=5000-5001;server_port=20000-20001"));
  trial.client("PLAY rtsp://proxy/a RTSP/1.0\r\nCSeq: 4\r\nSession: s1\r\n\r\n");
  EXPECT_THAT(trial.server("RTSP/1.0 200 OK\r\nCSeq: 4\r\nRTP-Info: url=rtsp://10.9.0.1/a/t1;seq=1\r\n\r\n"),
              HasSubstr("RTP-Info: url=rtsp://proxy/a/t1;seq=1\r\n"));
}

// Attributes with addresses: none of a server's own reaches a client of an explicit proxy.
TEST(ProxySetup, ExplicitAttributesNameTheProxy) {
  struct Case {
    std::string reported, passed;
  };
  for (const Case& one : {
           Case{"a=source-filter: incl IN IP4 * 10.9.0.1\r\n", ""},
           Case{"A=Source-Filter:incl IN IP4 * 10.9.0.1\r\n", ""},
           Case{"a=candidate:1 1 UDP 2130706431 10.9.0.1 6000 typ host\r\n", ""},
           Case{"a=remote-candidates:1 10.9.0.1 6000\r\n", ""},
           Case{"a=rtcp:6001 IN IP4 10.9.0.1\r\n", "a=rtcp:6001 IN IP4 10.8.0.7\r\n"},
           Case{"a=rtcp:6001 IN IP4 camera.local\r\n", "a=rtcp:6001 IN IP4 10.8.0.7\r\n"},
           Case{" a=RTCP: 6001 IN IP6 2001:db8::1\r\n", "a=rtcp:6001 IN IP4 10.8.0.7\r\n"},
           Case{"a=rtcp:6001\r\n", "a=rtcp:6001\r\n"},
           Case{"a=rtcp-fb:8 nack\r\n", "a=rtcp-fb:8 nack\r\n"},
           Case{"a=rtcp-mux\r\n", "a=rtcp-mux\r\n"},
       }) {
    SCOPED_TRACE(one.reported);
    for (const bool of_the_session : {true, false}) {
      for (const bool transparently : {true, false}) {
        Trial trial({}, transparently ? transparent() : explicit_ones());
        trial.client("DESCRIBE rtsp://10.9.0.1/a RTSP/1.0\r\nCSeq: 2\r\n\r\n");
        const std::string proper = 'a' + one.reported.substr(one.reported.find('='));  // as all readers take it
        const std::string& passed = transparently ? proper : one.passed;
        const std::string described = trial.server(
            test::with_body("RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\n",
                            "v=0\r\n" + (of_the_session ? one.reported : "") + "m=audio 0 RTP/AVP 8\r\na=ptime:20\r\n" +
                                (of_the_session ? "" : one.reported) + "a=control:t1\r\n"));
        EXPECT_THAT(described, HasSubstr("\r\n\r\nv=0\r\n" + (of_the_session ? passed : "") + "m=audio "));
        EXPECT_THAT(described, HasSubstr("a=ptime:20\r\n" + (of_the_session ? "" : passed) + "a=control:t1\r\n"));
      }
    }
  }
}

TEST(ProxySetup, ExplicitWithoutPorts) {
  Trial trial({}, explicit_ones("10.9.0.1:8554"));
  trial.describe();
  trial.host.answer.admitted = trial.host.answer.ports_left = false;
  EXPECT_EQ(trial.client(test::ffmpeg_setup_video), "");
  EXPECT_THAT(trial.answer(), HasSubstr("RTSP/1.0 503 Service Unavailable\r\n"));
  EXPECT_THAT(trial.host.refusals, ElementsAre("no_media_ports 503"));
}

TEST(ProxySetup, Ipv6) {
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
  trial.server(setup_answer(good_answer + ";source=2001:db8:0::1"));
  ASSERT_EQ(trial.host.streams.size(), 1U);
  EXPECT_EQ(trial.host.streams[0].server_side.server.str(), "2001:db8::1");
  EXPECT_THAT(trial.host.rates, ElementsAre(88'000U));
}

}  // namespace
}  // namespace sluice::media::rtsp
