// Device work of several elements in one launch. Each element of a pass enqueues its own work, unless a maker that
// knows these elements is registered: then a Fusion enqueues the work of all. Elements themselves know nothing of it.
//
// For elements of the tree alone: a plug-in that is refused could not take its registration back, so plug-ins do not
// have the symbol.
//
// Thread-safety: makers register before main(); the control thread makes a Fusion; the device's worker thread launches.
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
  // Enqueues the work of all elements of the pass for these batches, `most_together` at most. All are reported done
  // together. False: the Fusion does not do these batches, and has enqueued nothing.
  virtual Expected<bool> launch(std::span<Batch* const> batches, device::GpuStream& stream) = 0;
};

// Makes the Fusion of these elements of a pass, in order; some may have no device work (Shape::on_device). Null: this
// maker does not know them.
using FusionMaker = std::function<std::unique_ptr<Fusion>(std::span<Element* const> elements)>;
bool register_fusion(FusionMaker maker);
std::unique_ptr<Fusion> make_fusion(std::span<Element* const> elements);

}  // namespace sluice::engine
