// A connection between sockets of this process: an explicit one, for that needs no privilege.
#include "function/srtp/rtsp/connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "function/srtp/rtsp/connection_fixture_test.h"
#include "function/srtp/rtsp/tcp_pair_test.h"

namespace sluice::function::rtsp {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

// For the deadline that it is promised.
TEST_F(RtspConnection, AdmissionHearsOfTheKindAndTheServer) {
  ask_for_a_medium();
  ASSERT_EQ(budget_.media.size(), 1U);
  EXPECT_EQ(budget_.media[0].kind, "audio");
  EXPECT_EQ(budget_.media[0].server, 3U);
}

// 503 in any case: players ask for another transport after a 461, and there is none.
TEST_F(RtspConnection, PortsOfAnotherSessionAreSaidToBeInUse) {
  for (const bool has : {false, true}) {
    if (has) {
      connection_.reset();
      SetUp();
    }
    ask_for_a_medium();
    EXPECT_THAT(beside_.asked, testing::ElementsAre(5000));
    beside_.asked.clear();
    beside_.has = has;
    streams_.is_full = true;
    say(server_,
        "RTSP/1.0 200 OK\r\nCSeq: 2\r\nSession: s\r\nTransport: "
        "RTP/AVP;unicast;server_port=6000-6001\r\n\r\n");
    const std::string answer = heard(client_);
    EXPECT_THAT(answer, StartsWith("RTSP/1.0 503 Service Unavailable\r\nCSeq: 2\r\n"));
    EXPECT_EQ(answer.find("\r\nRetry-After: 5\r\n") != std::string::npos, has) << answer;
    const std::string reason = has ? "ports_in_use" : "not_opened";
    EXPECT_EQ(metric("rtsp_refused_" + reason), 1U);
    EXPECT_EQ(metric("rtsp_closed_" + reason), 1U);
    EXPECT_EQ(budget_.used(), 0U);
    streams_.is_full = false;
  }
}

// In whose way its media are: another connection of the same client's alone.
TEST_F(RtspConnection, IsInTheWayOfWhoWantsItsStreams) {
  play_a_medium();
  ASSERT_GE(streams_.keys.size(), 2U);
  const function::MediaKey its = streams_.keys.back();
  function::MediaKey others = its;
  others.destination_port = 7000;
  const Fd listener = test::listening();
  const auto same = connection(ends().here, "10.1.0.2", listener),
             other = connection(ends().here, "10.1.0.3", listener);
  const struct {
    const char* what;
    const Connection& asking;
    std::vector<function::MediaKey> keys;
    bool is;
  } cases[] = {
      {"its stream", *same, {its}, true},         {"one of several", *same, {others, its}, true},
      {"another stream", *same, {others}, false}, {"none", *same, {}, false},
      {"another client", *other, {its}, false},   {"itself", *connection_, {its}, false},
  };
  for (const auto& [what, asking, keys, is] : cases) EXPECT_EQ(connection_->is_in_the_way(asking, keys), is) << what;
  EXPECT_FALSE(same->is_in_the_way(*connection_, std::vector{its})) << "it has no media";
}

// What is logged meanwhile.
class Said {
 public:
  Said() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("t", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~Said() { spdlog::set_default_logger(before_); }
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(RtspConnection, NoPasswordIsLogged) {
  const Said said;
  say(client_,
      "SETUP rtsp://me:hush@10.1.0.1/a/t1 RTSP/1.0\r\nCSeq: 1\r\nTransport: "
      "RTP/SAVP;unicast;client_port=5000-5001\r\n\r\n");
  EXPECT_THAT(said.text(), HasSubstr("455 no_offer rtsp://10.1.0.1/a/t1"));
}

// U+009B begins a command of the terminal's, as ESC and [ do, which no request may hold.
TEST_F(RtspConnection, NothingOfAClientsReachesTheTerminalButText) {
  const Said said;
  say(client_,
      "SETUP rtsp://10.1.0.1/\xc2\x9b"
      "2J RTSP/1.0\r\nCSeq: 1\r\nTransport: "
      "RTP/SAVP;unicast;client_port=5000-5001\r\n\r\n");
  EXPECT_THAT(said.text(), HasSubstr("455 no_offer rtsp://10.1.0.1/??2J"));
}

TEST_F(RtspConnection, WhyAMediumHasEndedIsLoggedInWords) {
  ask_for_a_medium();
  const Said said;
  connection_->stop(now_);
  EXPECT_THAT(said.text(), HasSubstr(" does not play the audio of "));
  EXPECT_THAT(said.text(), HasSubstr(": the gateway has ended the connection (stopped)"));
}

// It is no fault of the gateway's, which a warning would say.
TEST_F(RtspConnection, PortsInUseHaveALineOfTheirOwn) {
  for (const bool has : {true, false}) {
    if (!has) {
      connection_.reset();
      SetUp();
    }
    ask_for_a_medium();
    beside_.has = has;
    streams_.is_full = true;
    const Said said;
    say(server_,
        "RTSP/1.0 200 OK\r\nCSeq: 2\r\nSession: s\r\nTransport: RTP/AVP;unicast;server_port=6000-6001\r\n\r\n");
    EXPECT_EQ(said.text().find(" is not opened: no") != std::string::npos, !has) << said.text();
    EXPECT_EQ(said.text().find(": another session of the client's address has its ports") != std::string::npos, has)
        << said.text();
    EXPECT_EQ(said.text().find(": the gateway could not take it (not_opened)") != std::string::npos, !has);
    streams_.is_full = false;
  }
}

TEST_F(RtspConnection, WhoEndsASessionIsCounted) {
  const struct {
    const char* metric;
    std::function<void()> end;
  } cases[] = {
      // As ffmpeg ends: it does not wait for the answer.
      {"rtsp_closed_teardown",
       [&] {
         const std::string_view bye = "TEARDOWN rtsp://10.1.0.1/a RTSP/1.0\r\nCSeq: 3\r\nSession: s\r\n\r\n";
         EXPECT_EQ(send(client_.get(), bye.data(), bye.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bye.size()));
         client_ = Fd();
       }},
      {"rtsp_closed_client_closed", [&] { client_ = Fd(); }},
      // What it has not read makes a reset of it.
      {"rtsp_closed_client_gone",
       [&] {
         say(server_, "OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\n");
         client_ = Fd();
       }},
      {"rtsp_closed_server_gone", [&] { server_ = Fd(); }},
      {"rtsp_closed_stopped", [&] { connection_->stop(now_); }},
  };
  for (const auto& [name, end] : cases) {
    if (metric("rtsp_opened") != 0) SetUp();
    play_a_medium();
    end();
    run();
    EXPECT_EQ(metric(name), 1U) << name;
    EXPECT_EQ(metric("rtsp_media"), 0U) << name;
    if (!server_) continue;
    const std::string reported = heard(server_);
    EXPECT_THAT(reported, HasSubstr("TEARDOWN ")) << name;
    EXPECT_EQ(reported.find("TEARDOWN "), reported.rfind("TEARDOWN ")) << name << ": once";
  }
}

TEST_F(RtspConnection, WithoutAStreamItEndsWhenItIsIdle) {
  options_.idle_timeout = 20s;
  pass(15s);
  say(server_, "OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\n");
  pass(20s);
  EXPECT_EQ(metric("rtsp_idle_closed"), 0U) << "since it heard something";
  pass(1s);
  EXPECT_EQ(metric("rtsp_idle_closed"), 1U);
  pass(Connection::farewell);
  EXPECT_TRUE(connection_->done());
}

// Bytes that make no message are no sign of life.
TEST_F(RtspConnection, WhoSendsHalfAMessageIsIdle) {
  options_.idle_timeout = 20s;
  say(client_, "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
  for (int i = 0; i < 4; ++i) {
    pass(5s);
    say(client_, "O");
  }
  EXPECT_EQ(metric("rtsp_idle_closed"), 0U);
  pass(1s);
  EXPECT_EQ(metric("rtsp_idle_closed"), 1U);
}

// As `printf ... | nc -N` asks.
TEST_F(RtspConnection, AClientThatOnlyAsksHearsTheAnswers) {
  for (const bool reads : {true, false}) {
    if (!reads) SetUp();
    say(client_, "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\nOPTIONS * RTSP/1.0\r\nCSeq: 2\r\n\r\n");
    ASSERT_EQ(shutdown(client_.get(), SHUT_WR), 0);
    run();
    EXPECT_FALSE(connection_->done());
    say(server_, "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n");
    if (!reads) client_ = Fd();
    say(server_, "RTSP/1.0 200 OK\r\nCSeq: 2\r\n\r\n");
    if (reads) {
      const std::string reported = heard(client_);
      EXPECT_THAT(reported, HasSubstr("CSeq: 1\r\n"));
      EXPECT_THAT(reported, HasSubstr("CSeq: 2\r\n"));
    }
    server_ = Fd();
    run();
    EXPECT_TRUE(connection_->done()) << reads;
  }
}

// Its media have ended, and so has it, whatever it still waits for.
TEST_F(RtspConnection, AClientWithMediaThatEndsHasClosed) {
  play_a_medium();
  say(client_, "OPTIONS * RTSP/1.0\r\nCSeq: 3\r\n\r\n");
  ASSERT_EQ(shutdown(client_.get(), SHUT_WR), 0);
  run();
  EXPECT_EQ(metric("rtsp_closed_client_closed"), 1U);
}

TEST_F(RtspConnection, WithAStreamItIsNeverIdle) {
  options_.idle_timeout = 20s;
  play_a_medium();
  pass(60s);
  EXPECT_EQ(metric("rtsp_idle_closed"), 0U);
  EXPECT_EQ(metric("rtsp_media"), 1U);
}

// The session's time is a minute, and ten seconds of grace.
TEST_F(RtspConnection, AClientLivesByItsRtcp) {
  play_a_medium();
  for (int i = 0; i < 3; ++i) {
    ++streams_.of_client;
    pass(60s);
    EXPECT_EQ(metric("rtsp_media"), 1U) << i;
  }
  pass(70s);
  EXPECT_EQ(metric("rtsp_media"), 1U);
  pass(1s);
  EXPECT_EQ(metric("rtsp_closed_timeout"), 1U) << "none has come any more";
}

TEST_F(RtspConnection, AServerThatDoesNotAnswerKeepsNoRate) {
  ask_for_a_medium();
  EXPECT_EQ(ports_.used(), 1U);
  EXPECT_EQ(metric("rtsp_rate_bits"), rate);
  pass(31s);
  EXPECT_EQ(metric("rtsp_rate_bits"), 0U);
  EXPECT_EQ(budget_.used(), 0U);
  EXPECT_EQ(ports_.used(), 0U);
  EXPECT_THAT(heard(client_), StartsWith("RTSP/1.0 504 Gateway Time-out\r\nCSeq: 2\r\n"));
  EXPECT_EQ(metric("rtsp_closed_unanswered"), 1U);
  EXPECT_EQ(metric("rtsp_refused_unanswered"), 1U);
  pass(3s);
  EXPECT_TRUE(connection_->done());
}

// By what it lets the kernel keep, and 16 KiB that were read at once.
TEST_F(RtspConnection, AClientThatDoesNotReadHoldsUpTheServer) {
  constexpr std::size_t body = 100'000;
  std::size_t sent = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string request = "OPTIONS * RTSP/1.0\r\nCSeq: " + std::to_string(i % 60) +
                                "\r\nContent-Length: " + std::to_string(body) + "\r\n\r\n" + std::string(body, 'x');
    const ssize_t got = send(server_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (got <= 0) break;
    sent += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < request.size()) break;
    run();
  }
  EXPECT_LT(sent, std::size_t{19} << 20);
  EXPECT_EQ(connection_->interest(Side::server) & EPOLLIN, 0U);
  EXPECT_FALSE(connection_->done());
  std::size_t read = 0, last = 1;
  for (; last != 0; read += last) {
    last = heard(client_).size();
    run();
  }
  EXPECT_GT(read, std::size_t{256} << 10) << "and goes on when it does";
  EXPECT_NE(connection_->interest(Side::server) & EPOLLIN, 0U);
}

TEST_F(RtspConnection, TooMuchThatWaitsIsCounted) {
  ask_for_a_medium();
  say(client_, "OPTIONS * RTSP/1.0\r\nCSeq: 3\r\n\r\n");
  for (int i = 0; i < 12 && !connection_->done(); ++i) {
    say(server_, "RTSP/1.0 100 X\r\nCSeq: 3\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
  }
  EXPECT_EQ(budget_.used(), 0U);
  EXPECT_EQ(metric("rtsp_closed_overflow"), 1U);
  connection_.reset();
  EXPECT_EQ(metric("rtsp_overflowed"), 1U);
}

// Of which the connection is not old enough to have had its time to connect, and the client takes a little now and
// then.
TEST_F(RtspConnection, AFarewellHasAnEnd) {
  for (int i = 0; i < 20; ++i) {
    say(server_, "OPTIONS * RTSP/1.0\r\nCSeq: " + std::to_string(i) + "\r\nContent-Length: 10000\r\n\r\n" +
                     std::string(10'000, 'x'));
  }
  server_ = Fd();
  run();
  ASSERT_FALSE(connection_->done()) << "the client has not taken all";
  now_ += Connection::farewell - 1s;
  connection_->tick(now_);
  EXPECT_FALSE(connection_->done());
  now_ += 1s;
  connection_->ready(Side::client, EPOLLOUT, now_);
  connection_->tick(now_);
  EXPECT_TRUE(connection_->done());
}

// What waits is written, and then both sides have the rest of that time to read it.
TEST_F(RtspConnection, AFarewellIsHeard) {
  ask_for_a_medium();
  client_ = Fd();
  run();
  EXPECT_EQ(metric("rtsp_closed_client_closed"), 1U);
  pass(Connection::farewell - 1s);
  EXPECT_FALSE(connection_->done());
  EXPECT_EQ(heard(server_), "") << "there is no session yet";
  server_ = Fd();
  run();
  EXPECT_TRUE(connection_->done());
}

// With a client by TCP, which can vanish.
class RtspConnectionByTcp : public RtspConnection {
 protected:
  // By what the socket was set to.
  bool is_probed() const {
    int interval = 0;
    socklen_t size = sizeof interval;
    EXPECT_EQ(getsockopt(connection_->fd(Side::client), IPPROTO_TCP, TCP_KEEPINTVL, &interval, &size), 0);
    return interval == 1;
  }
  test::TcpPair ends() override {
    test::TcpPair pair = test::connected();
    EXPECT_EQ(fcntl(pair.there.get(), F_SETFL, O_NONBLOCK), 0);
    return pair;
  }
  // What `fd` hears within some time.
  std::string awaited(const Fd& fd, std::chrono::milliseconds patience) {
    std::string text;
    const auto begin = std::chrono::steady_clock::now();
    const auto start = now_;
    while (text.empty() && std::chrono::steady_clock::now() - begin < patience) {
      std::this_thread::sleep_for(20ms);
      now_ = start + (std::chrono::steady_clock::now() - begin);
      run();
      if (!connection_->done()) connection_->tick(now_);
      text = heard(fd);
    }
    return text;
  }
};

// One that has answered is asked no more, until another one wants its ports again.
TEST_F(RtspConnectionByTcp, IsProbedForWhoWantsItsPorts) {
  play_a_medium();
  const Fd listener = test::listening();
  const auto same = connection(ends().here, "10.1.0.2", listener),
             other = connection(ends().here, "10.1.0.3", listener);
  const struct {
    const char* what;
    const Connection& asking;
    media::rtsp::PortPair ports;
    bool is;
  } cases[] = {
      {"its ports", *same, {5000, 5001}, true},        {"RTCP's for RTP", *same, {5001, 5002}, true},
      {"RTP's for RTCP", *same, {4999, 5000}, true},   {"other ports", *same, {5002, 5003}, false},
      {"another client", *other, {5000, 5001}, false}, {"itself", *connection_, {5000, 5001}, false},
  };
  for (const auto& [what, asking, ports, is] : cases) {
    connection_->probe_for(asking, ports, now_);
    EXPECT_EQ(is_probed(), is) << what;
    pass(1s);
    EXPECT_FALSE(is_probed()) << what << ": its last ACK is younger than that";
  }
  EXPECT_EQ(metric("rtsp_media"), 1U);
}

// Long after connect_timeout, and with something on the way to the client that waits for its ACK.
TEST_F(RtspConnectionByTcp, OfAClientThatAProbeFindsGoneTheServerIsNotified) {
  ask_for_a_medium();
  say(server_, "RTSP/1.0 200 OK\r\nCSeq: 2\r\nSession: s\r\nTransport: RTP/AVP;unicast;server_port=6000-6001\r\n\r\n");
  EXPECT_THAT(awaited(client_, 2s), StartsWith("RTSP/1.0 200"));
  now_ += 20s;
  connection_->tick(now_);
  test::vanish(client_);
  say(server_, "OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\n");
  std::this_thread::sleep_for(100ms);  // its last ACK is older than what the kernel's clock can resolve
  const Fd listener = test::listening();
  const auto asking = connection(ends().here, "10.1.0.2", listener);
  connection_->probe_for(*asking, {5000, 5001}, now_);
  EXPECT_THAT(awaited(server_, 8s), StartsWith("TEARDOWN"));
  EXPECT_EQ(metric("rtsp_closed_client_gone"), 1U);
}

}  // namespace
}  // namespace sluice::function::rtsp
