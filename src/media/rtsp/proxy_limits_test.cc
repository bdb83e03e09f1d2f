// What a side that does not answer, read or stop may cost: time, memory, streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "media/rtsp/proxy.h"
#include "media/rtsp/proxy_trial_test.h"

namespace sluice::media::rtsp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string options(int cseq) {
  return "OPTIONS * RTSP/1.0\r\nCSeq: " + std::to_string(cseq) + "\r\n\r\n";
}

std::string answer_to(int cseq, int status = 200, std::string_view headers = "") {
  return "RTSP/1.0 " + std::to_string(status) + " X\r\nCSeq: " + std::to_string(cseq) + "\r\n" + std::string(headers) +
         "\r\n";
}

void pass(Trial& trial, std::chrono::seconds time) {
  trial.now += time;
  trial.proxy.tick(trial.now);
}

// A server that says nothing.
TEST(ProxyLimits, ASetupWithoutAnAnswerGivesBackWhatItWasAdmittedWith) {
  Trial trial;
  trial.describe();
  trial.client(test::ffmpeg_setup_video);
  ASSERT_THAT(trial.host.admitted, SizeIs(1));
  pass(trial, 30s);
  EXPECT_THAT(trial.host.ends, IsEmpty());
  pass(trial, 1s);
  EXPECT_THAT(trial.host.ends, ElementsAre("1 unanswered"));
  EXPECT_THAT(trial.host.refusals, ElementsAre("unanswered 504"));
  EXPECT_EQ(trial.answer(), "RTSP/1.0 504 Gateway Time-out\r\nCSeq: 3\r\n\r\n");
  EXPECT_TRUE(trial.proxy.over()) << "what the server may agree to yet could not be protected";
}

TEST(ProxyLimits, ASetupWithoutAnAnswerEndsWhatPlays) {
  Trial trial;
  trial.set_up();
  pass(trial, 30s);
  trial.client(test::ffmpeg_setup_audio);
  pass(trial, 20s);
  trial.client(test::ffmpeg_play);
  pass(trial, 11s);
  EXPECT_THAT(trial.host.ends, ElementsAre("1 unanswered", "2 unanswered"));
  EXPECT_THAT(trial.host.refusals, ElementsAre("unanswered 504", "unanswered 504")) << "with all that waits behind it";
  EXPECT_THAT(Trial::taken(trial.proxy.to_server()), HasSubstr("TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\n"));
}

TEST(ProxyLimits, OtherRequestsWithoutAnAnswerHoldUpNone) {
  Settings settings;
  settings.max_pending = 2;
  Trial trial(settings);
  EXPECT_EQ(trial.client(options(1)), options(1));
  pass(trial, 20s);
  EXPECT_EQ(trial.client(options(2) + options(3)), options(2)) << "3 waits unread";
  EXPECT_EQ(trial.server(answer_to(2)), "") << "waits for the answer before it";
  pass(trial, 11s);
  EXPECT_EQ(trial.answer(), "RTSP/1.0 504 Gateway Time-out\r\nCSeq: 1\r\n\r\n" + answer_to(2));
  EXPECT_EQ(Trial::taken(trial.proxy.to_server()), options(3));
  EXPECT_FALSE(trial.proxy.over());
  EXPECT_THAT(trial.host.ends, IsEmpty());

  EXPECT_EQ(trial.client(options(1)), "") << "its number is not free: it may be answered yet";
  EXPECT_THAT(trial.host.refusals, ElementsAre("unanswered 504", "cseq 400"));
  EXPECT_EQ(trial.server(answer_to(1)), "") << "nobody waits for it";
  EXPECT_EQ(trial.proxy.counters().unmatched_responses, 0U);
  trial.server(answer_to(3));
  EXPECT_EQ(trial.client(options(1)), options(1));
}

// What a server's interim answers promise is no answer.
TEST(ProxyLimits, InterimAnswersDoNotMakeItWaitLonger) {
  Trial trial;
  trial.client(options(1));
  pass(trial, 20s);
  EXPECT_EQ(trial.server(answer_to(1, 100)), answer_to(1, 100));
  pass(trial, 11s);
  EXPECT_THAT(trial.answer(), HasSubstr("504"));
}

TEST(ProxyLimits, AServerThatDoesNotReadIsNotReadFrom) {
  Trial trial;
  const std::string announce = "ANNOUNCE * RTSP/1.0\r\nCSeq: 1\r\n\r\n";
  std::size_t calls = 0;
  while (trial.proxy.wants_server() && ++calls < 100'000) {
    trial.proxy.from_server(announce, trial.now);
  }
  EXPECT_LT(calls, 100'000U) << "each is answered by the proxy, and no answer is taken";
  EXPECT_LT(trial.proxy.to_server().size(), Settings{}.output_limit + 100);
  EXPECT_FALSE(trial.proxy.over());
  trial.proxy.to_server().clear();
  EXPECT_TRUE(trial.proxy.wants_server());
}

// Nobody need read less for these to be reported, for the answer before them will come from the same server.
TEST(ProxyLimits, AnswersThatWaitForOneBeforeThemAreBounded) {
  const std::string body(100'000, 'x');
  const auto whole = [&](int cseq, int status) {
    return answer_to(cseq, status, "Content-Length: " + std::to_string(body.size()) + "\r\n") + body;
  };
  for (const int status : {100, 200}) {
    Trial trial;
    trial.set_up();
    std::string all;
    for (int i = 11; i < 60; ++i) all += options(i);
    trial.client(all);
    EXPECT_EQ(trial.server(whole(12, status)), "");
    EXPECT_FALSE(trial.proxy.over());
    for (int i = 13; i < 60 && !trial.proxy.over(); ++i) {
      trial.proxy.from_server(whole(status == 100 ? 12 : i, status), trial.now);
    }
    EXPECT_TRUE(trial.proxy.over());
    EXPECT_THAT(trial.host.ends, ElementsAre("1 overflow"));
    EXPECT_LT(trial.proxy.to_client().size() + trial.proxy.to_server().size(), body.size());
    EXPECT_THAT(Trial::taken(trial.proxy.to_server()), HasSubstr("TEARDOWN"));
  }
}

// Whatever an owner does: one that does not ask wants_client() and wants_server().
TEST(ProxyLimits, OutputsThatNobodyTakesAreBounded) {
  for (const bool client : {true, false}) {
    Trial trial;
    for (int i = 0; i < 100'000 && !trial.proxy.over(); ++i) {
      client ? trial.proxy.from_client("RECORD * RTSP/1.0\r\nCSeq: 1\r\n\r\n", trial.now)
             : trial.proxy.from_server("OPTIONS * RTSP/1.0\r\n\r\n", trial.now);
    }
    EXPECT_TRUE(trial.proxy.over());
    EXPECT_LT(trial.proxy.to_client().size() + trial.proxy.to_server().size(), 2U << 20);
  }
}

TEST(ProxyLimits, StreamsOnTheirWayCount) {
  Settings settings;
  settings.max_streams = 1;
  Trial trial(settings);
  trial.describe();
  EXPECT_NE(trial.client(test::ffmpeg_setup_video), "");
  EXPECT_EQ(trial.client(test::ffmpeg_setup_audio), "");
  EXPECT_THAT(trial.host.refusals, ElementsAre("too_many_streams 453"));
  EXPECT_THAT(trial.host.admitted, ElementsAre(1U));
}

// Else the client would get the answer to the proxy's own request, or its own would go nowhere.
TEST(ProxyLimits, ANumberOfTheProxysOwnIsNotTheClients) {
  Trial trial;
  trial.set_up();
  pass(trial, 71s);
  ASSERT_THAT(Trial::taken(trial.proxy.to_server()), HasSubstr("TEARDOWN"));
  EXPECT_EQ(trial.client(options(1'000'000'000)), "");
  EXPECT_THAT(trial.host.refusals, ElementsAre("cseq 400"));
  EXPECT_EQ(trial.answer(), "RTSP/1.0 400 Bad Request\r\nCSeq: 1000000000\r\n\r\n");
  EXPECT_EQ(trial.server(answer_to(1'000'000'000)), "");
  EXPECT_EQ(trial.client(options(1'000'000'000)), options(1'000'000'000)) << "answered, and free again";
}

// RFC 7826 section 13.7: a server may end a session, too.
TEST(ProxyLimits, TheServerEndsTheSession) {
  const auto teardown = [](std::string_view uri, std::string_view session) {
    return "TEARDOWN " + std::string(uri) + " RTSP/1.0\r\nCSeq: 7\r\nSession: " + std::string(session) + "\r\n\r\n";
  };
  const std::string video = "rtsp://10.9.0.1:8554/plain/stream=0", all = "rtsp://10.9.0.1:8554/plain/";
  struct Case {
    std::string request;
    std::vector<std::string> ends;
  };
  for (const Case& one : {
           Case{teardown(all, "fwZMuBoktkKvhvLA"), {"1 teardown", "2 teardown"}},
           Case{teardown("*", "fwZMuBoktkKvhvLA;timeout=60"), {"1 teardown", "2 teardown"}},
           Case{teardown(video, "fwZMuBoktkKvhvLA"), {"1 teardown"}},
           Case{teardown(all, "other"), {}},
           Case{"TEARDOWN " + all + " RTSP/1.0\r\nCSeq: 7\r\n\r\n", {}},
       }) {
    Trial trial;
    trial.set_up();
    trial.client(test::ffmpeg_setup_audio);
    trial.server(test::gst_setup_audio_answer);
    EXPECT_EQ(trial.server(one.request), one.request) << "the client hears it";
    EXPECT_EQ(trial.host.ends, one.ends) << one.request;
    EXPECT_EQ(trial.client(answer_to(7)), answer_to(7));
  }
}

TEST(ProxyLimits, AServerThatKnowsTheSessionNoMoreSaysSoToAnyRequest) {
  Trial trial;
  trial.set_up();
  trial.client(test::ffmpeg_setup_audio);
  trial.server(answer_to(4, 454));
  EXPECT_THAT(trial.host.ends, ElementsAre("2 setup_failed", "1 no_session"));
}

}  // namespace
}  // namespace sluice::media::rtsp
