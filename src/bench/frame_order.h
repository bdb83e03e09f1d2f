// Whether frames leave in the order in which they came: an element in front of a chain that numbers what each lane
// receives, and looks at the numbers of what leaves. A lane's order is that of each of its flows, and a flow is one
// lane's.
//
// Numbers are kept beside the frames, so that elements may change all of a frame.
//
// Threads: as of engine::Element; the counts from any thread. Cost: some 2 ns a frame, as estimated, and that
// frames are copied to the port's queue, as in front of every TxHook.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/element.h"
#include "engine/traits.h"

struct rte_mbuf;

namespace sluice::cli::bench {

class FrameOrder final : public engine::Element, public engine::Ingress, public engine::TxHook {
 public:
  // Of the rig's one replay port: `frames` of each lane.
  FrameOrder(unsigned lanes, unsigned frames);
  ~FrameOrder() override;

  // That left, and of these: those that left behind a later one of their lane, or for the second time.
  std::uint64_t left() const;
  std::uint64_t out_of_order() const;

  // A lane has received a frame of its queue; one leaves.
  void came(std::uint32_t lane, const rte_mbuf& frame);
  void leaves(std::uint32_t lane, const rte_mbuf& frame);

  void* find_trait(std::string_view name) override {
    return engine::offer<engine::Ingress, engine::TxHook>(name, this);
  }
  void admit(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}
  bool hooks(std::uint16_t /*port*/) const override { return true; }
  unsigned leave(std::uint32_t lane, std::uint16_t port, rte_mbuf** frames, unsigned count,
                 engine::Emitter& out) override;

 private:
  struct Lane;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace sluice::cli::bench
