// A proxy between a client and a server that a test speaks for.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "media/rtsp/peers_test.h"
#include "media/rtsp/proxy.h"

namespace sluice::media::rtsp::test {

using namespace std::chrono_literals;

struct Recorder final : Host {
  Admission admit(const StreamRequest& request) override {
    admitted.push_back(request.number);
    rates.push_back(request.rate);
    return answer;
  }
  Opening opened(const Stream& stream) override {
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

  void left_out(Omission omission, std::size_t count, std::string_view why) override {
    omitted.push_back(std::to_string(count) + ' ' + omission_name(omission) + ' ' + std::string(why));
  }

  Admission answer;
  Opening opens = Opening::opened;
  std::vector<std::uint64_t> admitted, rates;
  std::vector<Stream> streams;
  std::vector<std::string> ends, refusals, reasons, omitted;
};

// Bytes that count up, from one call to the next too.
inline RandomSource counting() {
  return [next = std::uint8_t{0}](std::span<std::uint8_t> bytes) mutable -> Expected<void> {
    for (std::uint8_t& byte : bytes) {
      byte = next++;
    }
    return {};
  };
}

inline packet::IpAddress address(std::string_view text) {
  return *packet::IpAddress::parse(text);
}

inline Addresses transparent() {
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
  void describe(const std::string& description = gst_description()) {
    client(ffmpeg_describe);
    server(with_body(gst_describe_head, description));
  }
  // Video is playing.
  void set_up() {
    describe();
    client(ffmpeg_setup_video);
    server(gst_setup_video_answer);
  }

  Time now = Time{} + 1000s;
  Recorder host;
  Proxy proxy;
};

inline std::string setup(std::string_view transport, std::string_view more = "", unsigned cseq = 3) {
  return "SETUP rtsp://10.9.0.1:8554/plain/stream=0 RTSP/1.0\r\nCSeq: " + std::to_string(cseq) +
         "\r\nTransport: " + std::string(transport) + "\r\n" + std::string(more) + "\r\n";
}

inline std::string setup_answer(std::string_view transport, std::string_view session = "Session: s1\r\n") {
  return "RTSP/1.0 200 OK\r\nCSeq: 3\r\nTransport: " + std::string(transport) + "\r\n" + std::string(session) + "\r\n";
}

inline const std::string good_answer = "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001";

}  // namespace sluice::media::rtsp::test
