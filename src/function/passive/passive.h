// The element "passive": nothing is forwarded. For chains that only look, at a capture or at a mirrored port:
// chain = ["inspect", "passive"]. Every frame is dropped as "passive" when the elements before it have seen it.
//
// No work for a device. Settings: none.
#pragma once

#include "engine/element.h"
#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason passive_seen = packet::register_reason(
    "passive", "it was looked at, and nothing is forwarded by this chain", packet::DroppedBy::purpose);

class Passive final : public engine::Element {
 public:
  engine::Shape shape() const override { return {.sends = false, .ends_chain = true}; }
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override;
  Expected<Change> reload(Element& /*fresh*/) override { return Change{}; }
};

}  // namespace sluice::function
