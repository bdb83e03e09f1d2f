// What the tests of the flow table share: a small one, and packets through it.
#pragma once

#include <vector>

#include "flow/flow_table.h"
#include "flow/recorder.h"

namespace sluice::flow::test {

inline constexpr Direction up = Direction::to_server;
inline constexpr Direction down = Direction::to_client;

inline FlowSettings small(std::uint32_t capacity = 64) {
  FlowSettings settings;
  settings.capacity = capacity;
  settings.seed = 42;
  return settings;
}

struct Ends final : FlowEnd {
  void flow_ended(Flow&, FlowEndReason reason) override { reasons.push_back(reason); }
  std::vector<FlowEndReason> reasons;
};

// One packet through the table.
struct Fed {
  Flow* flow;
  Direction direction;
  TcpCheck check;
};
inline Fed feed(FlowTable& table, const Packet& packet, Milliseconds now) {
  Fed fed{};
  fed.flow = table.find_or_make(packet, now, fed.direction);
  if (fed.flow != nullptr) {
    fed.check = table.track(*fed.flow, fed.direction, packet, now);
  }
  return fed;
}

inline void handshake(FlowTable& table, std::uint32_t client, std::uint16_t port, Milliseconds now) {
  feed(table, tcp(client, port, up, tcp_syn, 100, 0), now);
  feed(table, tcp(client, port, down, tcp_syn | tcp_ack, 500, 101), now);
  feed(table, tcp(client, port, up, tcp_ack, 101, 501), now);
}

inline FlowSettings remembering(std::uint32_t capacity = 64) {
  FlowSettings settings = small(capacity);
  settings.remembered = 1'000'000;
  return settings;
}

}  // namespace sluice::flow::test
