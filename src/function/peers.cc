#include "function/peers.h"

#include "engine/batch_writer.h"
#include "engine/burst.h"
#include "engine/emitter.h"

namespace sluice::function {

std::vector<std::uint16_t> peers_of(const engine::PortTable& ports) {
  std::vector<std::uint16_t> peers;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    peers.push_back(ports.peer(static_cast<std::uint16_t>(port)));
  }
  return peers;
}

void PeerFunction::collect(engine::Burst& burst, engine::BatchWriter& writer) {
  engine::BatchRows rows(writer.batch());
  for (unsigned i = 0; i < burst.size(); ++i) {
    rows.append(burst, i, burst.port());
  }
}

void PeerFunction::forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) {
  for (std::uint32_t i = first; i < first + count; ++i) {
    out.transmit(batch, i, peers_[batch.argument[i]]);
  }
}

}  // namespace sluice::function
