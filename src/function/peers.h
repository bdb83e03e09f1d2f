// For elements that send every frame from its port to the port's peer.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/element.h"
#include "engine/port_table.h"
#include "engine/traits.h"

namespace sluice::function {

// For each port the index of the one that its frames leave through.
std::vector<std::uint16_t> peers_of(const engine::PortTable& ports);

// The end of such a pipeline: it only adds what happens to frames on a device.
class PeerElement : public engine::Element, public engine::Egress {
 public:
  explicit PeerElement(std::vector<std::uint16_t> peers) : peers_(std::move(peers)) {}

  engine::Shape shape() const override { return {.ends_chain = true}; }
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) final;
  void* find_trait(std::string_view name) override { return engine::offer<engine::Egress>(name, this); }
  std::uint16_t egress(const engine::Batch& batch, std::uint32_t i) const final { return peers_[batch.row[i].port]; }

 private:
  std::vector<std::uint16_t> peers_;
};

}  // namespace sluice::function
