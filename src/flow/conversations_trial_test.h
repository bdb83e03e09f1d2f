// What the tests of conversations share: small tables, and a whole conversation.
#pragma once

#include <string>
#include <string_view>

#include "flow/conversations.h"
#include "flow/recorder.h"

namespace sluice::flow::test {

inline constexpr Direction up = Direction::to_server;
inline constexpr Direction down = Direction::to_client;

inline ConversationSettings small() {
  ConversationSettings settings;
  settings.flows.capacity = 64;
  settings.flows.seed = 1;
  settings.extras = settings.http_connections = settings.http_transactions = 8;
  settings.stream_bytes = settings.http_bytes = 1U << 20;
  return settings;
}

// One whole conversation: handshake, a request, an answer, both FINs.
inline void converse(Conversations& conversations, std::uint32_t client, const std::string& request,
                     const std::string& answer, Milliseconds now, bool ends = true) {
  const auto sent = static_cast<std::uint32_t>(request.size());
  const auto got = static_cast<std::uint32_t>(answer.size());
  const auto send = [&](Direction direction, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledgment,
                        std::string_view payload = {}) {
    conversations.packet(tcp(client, 1000, direction, flags, sequence, acknowledgment, payload), now);
  };
  send(up, tcp_syn, 100, 0);
  send(down, tcp_syn | tcp_ack, 500, 101);
  send(up, tcp_ack, 101, 501);
  send(up, tcp_ack, 101, 501, request);
  send(down, tcp_ack, 501, 101 + sent, answer);
  if (ends) {
    send(down, tcp_ack | tcp_fin, 501 + got, 101 + sent);
    send(up, tcp_ack | tcp_fin, 101 + sent, 502 + got);
  }
}

inline const std::string get = "GET /x HTTP/1.1\r\n\r\n";
inline const std::string ok = "HTTP/1.1 200 ok\r\n\r\nbody";

inline std::vector<std::string> uris(const test::Recorder& recorder) {
  std::vector<std::string> all;
  for (const test::Exchange& exchange : recorder.exchanges) {
    all.push_back(exchange.uri);
  }
  return all;
}

}  // namespace sluice::flow::test
