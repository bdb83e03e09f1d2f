// Device work of several elements as one. The elements of a pass each enqueue their own work, unless somebody who knows
// them has registered to do it for all of them at once: an optimisation that the contract of an element does not know.
//
// For elements of the tree: a plug-in that is refused could not take its registration back, so none has the symbol.
//
// Thread-safety: makers register before main(); make() on the control thread, launch() on the device's worker thread.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/error.h"
#include "engine/element.h"

namespace sluice::engine {

class Fusion {
 public:
  virtual ~Fusion() = default;
  // Enqueues the work that all elements of the pass have for these batches, `most_together` at most; of which none is
  // reported done before all are. False: not for these, and nothing is enqueued.
  virtual Expected<bool> launch(std::span<Batch* const> batches, device::GpuStream& stream) = 0;
};

// For these elements of a pass, in order, of which some have no device work (Shape::on_device); null: not for them.
using FusionMaker = std::function<std::unique_ptr<Fusion>(std::span<Element* const> elements)>;
bool register_fusion(FusionMaker maker);
std::unique_ptr<Fusion> make_fusion(std::span<Element* const> elements);

}  // namespace sluice::engine
