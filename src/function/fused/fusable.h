// The trait of an element whose device work can be a part of the fused kernel (fused.h).
#pragma once

#include <string_view>

#include "engine/batch.h"

namespace sluice::function {

struct FusedWork;

class Fusable {
 public:
  static constexpr std::string_view trait_name = "fusable";
  // Adds the batch's work to one kernel's for the whole pass, behind what the elements in front of this one have added.
  // False: it cannot, and has added nothing. launch() may still follow, where another element cannot. A frame that the
  // kernel drops for an element in front needs no result. On the device's worker thread.
  virtual bool join(const engine::Batch& batch, FusedWork& work) = 0;

 protected:
  ~Fusable() = default;
};

}  // namespace sluice::function
