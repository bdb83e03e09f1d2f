// For this room's tests: packets made by hand, and a sink that writes down what it hears.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flow/conversations.h"
#include "packet/headers.h"

namespace sluice::flow::test {

// A packet of 10.0.0.`client`:`port` to 10.0.1.1:80, or back.
inline Packet tcp(std::uint32_t client, std::uint16_t port, Direction direction, std::uint8_t flags,
                  std::uint32_t sequence, std::uint32_t acknowledgment, std::string_view payload = {}) {
  Packet packet;
  packet.family = 4;
  packet.protocol = packet::protocol_tcp;
  packet.source = {10, static_cast<std::uint8_t>(client >> 16), static_cast<std::uint8_t>(client >> 8),
                   static_cast<std::uint8_t>(client)};
  packet.destination = {11, 0, 1, 1};
  packet.source_port = port;
  packet.destination_port = 80;
  if (direction == Direction::to_client) {
    std::swap(packet.source, packet.destination);
    std::swap(packet.source_port, packet.destination_port);
  }
  packet.tcp_flags = flags;
  packet.window = 65535;
  packet.sequence = sequence;
  packet.acknowledgment = acknowledgment;
  packet.payload = payload;
  packet.ip_length = static_cast<std::uint32_t>(40 + payload.size());
  return packet;
}

struct Step {
  Direction direction;
  std::uint8_t flags;
  std::uint32_t sequence, acknowledgment;
  std::string text;
};

struct Exchange {
  std::string request_line, method, uri_raw, uri, version, host, request_headers, request_headers_raw, cookie,
      request_body;
  std::string request_body_before;  // what it was before it began anew
  std::string status_line, status, status_message, response_version, response_headers, set_cookie, response_body;
  std::string request_names, response_names;  // of the fields, each with a space behind
  std::string fresh;                          // the pieces of the response body, by their events
  std::string events;  // a letter for each event: l h b c of the request, L H B C of the response
  http::MessageFlags request_flags, response_flags;
  http::DecodeFlags decoding;
  unsigned interim = 0;
};

inline std::string names_of(const http::Message& message) {
  std::string names;
  for (std::size_t i = 0; i < message.field_count(); ++i) names.append(message.field_name(i)).append(" ");
  return names;
}

inline void write_down(Exchange& to, http::Event event, const http::Transaction& from) {
  constexpr std::string_view letters = "lhbcLHBCtT";
  const char letter = letters[static_cast<unsigned>(event)];
  if ((letter != 'b' && letter != 'B') || to.events.empty() || to.events.back() != letter) {
    to.events += letter;
  }
  to.request_line = from.request.line();
  to.method = from.method();
  to.uri_raw = from.uri_raw();
  to.uri = from.uri();
  to.version = from.version();
  to.host = from.host();
  to.request_headers = from.request.headers();
  to.request_headers_raw = from.request.headers_raw();
  to.cookie = from.request.cookie(true);
  to.request_names = names_of(from.request);
  to.response_names = names_of(from.response);
  to.request_flags = from.request.flags;
  to.interim = from.interim;
  if (letter == 'b' || letter == 'c') {
    if (letter == 'b' && from.request.body_shown == 0) to.request_body_before = to.request_body;
    to.request_body = from.request.body_view();
  }
  if (letter >= 'A' && letter <= 'Z') {
    to.status_line = from.response.line();
    to.status = from.status();
    to.status_message = from.status_message();
    to.response_version = from.response_version();
    to.response_headers = from.response.headers();
    to.set_cookie = from.response.cookie(false);
    to.response_flags = from.response.flags;
    to.decoding = from.response.decoding;
  }
  if (letter == 'B') {
    to.fresh.resize(std::min<std::size_t>(to.fresh.size(), from.response.body_shown));
    to.fresh += from.response.body_fresh();
    to.response_body = from.response.body_view();
  }
}

class Recorder final : public ConversationSink {
 public:
  void stream_data(Flow& flow, Extra&, Direction direction, const StreamData& data) override {
    bytes[static_cast<unsigned>(direction)] += data.fresh;
  }
  void stream_gap(Flow&, Extra&, Direction direction, std::uint64_t count) override {
    gaps[static_cast<unsigned>(direction)] += count;
  }
  void http(Flow& flow, Extra&, http::Event event, http::Transaction& transaction) override {
    const std::uint64_t key = std::uint64_t{flow.hash} << 32 | transaction.number;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == key) {
        write_down(exchanges[i], event, transaction);
        return;
      }
    }
    keys.push_back(key);
    exchanges.emplace_back();
    write_down(exchanges.back(), event, transaction);
  }
  void refused(Flow&, Direction, Taken why) override { refused_all.push_back(why); }
  void http_stopped(Flow&, Extra&, http::StopReason reason) override { stops.push_back(reason); }
  void http_limited(Flow&, http::Limit limit) override { limits.push_back(limit); }
  void flow_ended(Flow&, Extra*, FlowEndReason reason) override { ends.push_back(reason); }

  std::string bytes[2];
  std::uint64_t gaps[2] = {};
  std::vector<Taken> refused_all;
  std::vector<std::uint64_t> keys;
  std::vector<Exchange> exchanges;
  std::vector<http::StopReason> stops;
  std::vector<http::Limit> limits;
  std::vector<FlowEndReason> ends;
};

}  // namespace sluice::flow::test
