#include "function/peers.h"

namespace sluice::function {

std::vector<std::uint16_t> peers_of(const engine::PortTable& ports) {
  std::vector<std::uint16_t> peers;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    peers.push_back(ports.peer(static_cast<std::uint16_t>(port)));
  }
  return peers;
}

void PeerElement::apply(engine::Batch& batch, engine::Span span, engine::Emitter& /*out*/) {
  engine::SendRun run(batch, span);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (batch.goes_on(i)) {
      run.send(i, peers_[batch.row[i].port]);
    } else {
      run.other(i);
    }
  }
  run.finish();
}

}  // namespace sluice::function
