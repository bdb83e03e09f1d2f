// For functions that send every frame from its port to the port's peer.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/batch.h"
#include "engine/function.h"
#include "engine/port_table.h"

namespace sluice::function {

// For each port the index of the one that its frames leave through.
std::vector<std::uint16_t> peers_of(const engine::PortTable& ports);

// The ends of such a function: it only adds what happens to frames and verdicts in between.
class PeerFunction : public engine::Function {
 public:
  explicit PeerFunction(std::vector<std::uint16_t> peers) : peers_(std::move(peers)) {}

  // Takes every frame; the argument is the port that it came from.
  void collect(engine::Burst& burst, engine::BatchWriter& batch) final;
  std::uint16_t egress(const engine::Batch& batch, std::uint32_t i) const final { return peers_[batch.argument[i]]; }
  // Sends every frame, whatever its verdict.
  void forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) final;

 private:
  std::vector<std::uint16_t> peers_;
};

}  // namespace sluice::function
