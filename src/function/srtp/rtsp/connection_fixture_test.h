// A connection of the proxy's between sockets of this process, and all that it stands on, for its tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "function/srtp/rtsp/connection.h"
#include "function/srtp/rtsp/tcp_pair_test.h"

namespace sluice::function::rtsp {

inline constexpr std::uint64_t rate = 64'000;

// A table of streams that takes all.
class AnyStreams final : public function::MediaStreams {
 public:
  explicit AnyStreams(const function::RtspOptions& options) : options_(options) {}
  Expected<void> add(std::vector<function::MediaStreamSettings> streams) override {
    if (is_full) return make_error("no");
    count += streams.size();
    for (const function::MediaStreamSettings& one : streams) keys.push_back(one.key);
    return {};
  }
  std::size_t remove(std::span<const function::MediaKey> keys, function::MediaOrigin, bool) override {
    count -= keys.size();
    return keys.size();
  }
  void tidy(Time) override {}
  std::string measure() override { return {}; }
  std::vector<std::string> take_warnings() override { return {}; }
  std::uint64_t noted(const function::MediaKey& key) const override { return key == keys.back() ? of_client : 0; }
  std::vector<function::MediaStreamRow> list(std::size_t, const packet::IpAddress&, std::size_t&) const override {
    return {};
  }
  using Change = Expected<function::StreamChange>;
  Change add_text(std::string_view, const std::string&) override { return {}; }
  Change replace_text(std::string_view, const std::string&) override { return {}; }
  Change release_text(std::string_view, const std::string&) override { return {}; }
  Change remove_text(std::string_view, const std::string&) override { return {}; }
  void admit_by(engine::StreamAdmission&, std::chrono::nanoseconds) override {}
  std::uint32_t largest_frame() const override { return 1514; }
  const function::RtspOptions* rtsp() const override { return &options_; }

  std::size_t count = 0;
  std::vector<function::MediaKey> keys;  // all that were added; the last is a client's RTCP
  std::uint64_t of_client = 0;           // that it has noted
  bool is_full = false;

 private:
  const function::RtspOptions& options_;
};

// Remembers what it was asked for.
class Asked final : public Admission {
 public:
  bool admit(const Medium& medium) override {
    media.push_back(medium);
    return budget_.admit(medium);
  }
  void ended(const Medium& medium) override { budget_.ended(medium); }
  MediumRate held_to(const Medium& medium) const override { return budget_.held_to(medium); }
  std::string why() const override { return budget_.why(); }
  std::uint64_t used() const override { return budget_.used(); }

  std::vector<Medium> media;

 private:
  RateBudget budget_{10 * rate, 0, 25};
};

// Has what it is asked to have.
class Beside final : public Neighbours {
 public:
  void probe_for(const Connection&, const media::rtsp::PortPair& ports, Time) override { asked.push_back(ports.rtp); }
  bool in_the_way(const Connection&, std::span<const function::MediaKey> keys) const override {
    return has && !keys.empty();
  }

  bool has = false;
  std::vector<std::uint16_t> asked;
};

inline packet::IpAddress address(const char* text) {
  return *packet::IpAddress::parse(text);
}

class RtspConnection : public testing::Test {
 protected:
  void SetUp() override {
    const Fd listener = test::listening();
    test::TcpPair pair = ends();
    client_ = std::move(pair.there);
    connection_ = connection(std::move(pair.here), "10.1.0.2", listener);
    server_ = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    ASSERT_TRUE(server_);
    set_usual_options(server_.get());  // what it says is there at once
    run();
  }

  std::unique_ptr<Connection> connection(Fd fd, const char* client, const Fd& server) {
    Accepted accepted{std::move(fd), {address(client), 6000}, own_end(server.get()), {address("10.1.0.1"), 554}};
    accepted.upstream = 3;
    return std::make_unique<Connection>(Shared{options_, twins_, streams_, budget_, ports_, metrics_, logs_, &beside_},
                                        std::move(accepted), now_);
  }

  // The client's and the proxy's: without TCP, and with little capacity.
  virtual test::TcpPair ends() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    const int little = 1;
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    return {Fd(pair[1]), Fd(pair[0])};
  }

  // Until there is nothing to do.
  void run() {
    while (!connection_->done()) {
      std::array<pollfd, 2> fds;
      for (const Side side : {Side::client, Side::server}) {
        const std::uint32_t wanted = connection_->interest(side);
        fds[static_cast<std::size_t>(side)] = {wanted == 0 ? -1 : connection_->fd(side), static_cast<short>(wanted), 0};
      }
      if (poll(fds.data(), fds.size(), 2) <= 0) return;
      for (const Side side : {Side::client, Side::server}) {
        const auto events = static_cast<std::uint16_t>(fds[static_cast<std::size_t>(side)].revents);
        if (events != 0) connection_->ready(side, events, now_);
      }
    }
  }
  void pass(std::chrono::seconds time) {
    now_ += time;
    connection_->tick(now_);
    if (!connection_->done()) run();
  }
  void say(const Fd& from, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = send(from.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
      run();
      if (connection_->done() || sent <= 0) return;
    }
  }
  static std::string heard(const Fd& by) {
    std::string text(1 << 20, '\0');
    const ssize_t got = recv(by.get(), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  // Described, and asked for.
  void ask_for_a_medium() {
    say(client_, "DESCRIBE rtsp://10.1.0.1/a RTSP/1.0\r\nCSeq: 1\r\n\r\n");
    const std::string sdp = "v=0\r\nm=audio 0 RTP/AVP 8\r\nb=AS:64\r\na=control:t1\r\n";
    say(server_, "RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Type: application/sdp\r\nContent-Length: " +
                     std::to_string(sdp.size()) + "\r\n\r\n" + sdp);
    heard(client_);
    say(client_,
        "SETUP rtsp://10.1.0.1/a/t1 RTSP/1.0\r\nCSeq: 2\r\nTransport: RTP/SAVP;unicast;client_port=5000-5001\r\n\r\n");
    heard(server_);
    ASSERT_EQ(budget_.used(), rate);
  }
  void play_a_medium() {
    ask_for_a_medium();
    say(server_,
        "RTSP/1.0 200 OK\r\nCSeq: 2\r\nSession: s\r\nTransport: RTP/AVP;unicast;server_port=6000-6001\r\n\r\n");
    EXPECT_THAT(heard(client_), testing::StartsWith("RTSP/1.0 200"));
    ASSERT_EQ(metric("rtsp_media"), 1U);
  }
  std::uint64_t metric(const std::string& name) const {
    for (const engine::ServiceMetric& one : metrics_.list()) {
      if (one.name == name) return one.value;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  function::RtspOptions options_;
  const std::vector<std::string> twins_{};
  AnyStreams streams_{options_};
  Asked budget_;
  MediaPorts ports_{20000, 20009};
  Metrics metrics_;
  EventLogs logs_;
  Beside beside_;
  Time now_ = Time{} + std::chrono::seconds(1000);
  Fd client_, server_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace sluice::function::rtsp
