// The fused kernel as a pipeline's Fusion (engine/fusion.h).
#include "function/fused/fused.h"

#include <array>
#include <vector>

#include "engine/fusion.h"
#include "engine/traits.h"
#include "function/fused/fusable.h"

namespace sluice::function {
namespace {

class FusedPass final : public engine::Fusion {
 public:
  explicit FusedPass(std::vector<Fusable*> elements) : elements_(std::move(elements)) {}

  Expected<bool> launch(std::span<engine::Batch* const> batches, device::GpuStream& stream) override {
    static_assert(engine::most_together <= most_works);
    std::array<FusedWork, most_works> works;
    for (std::size_t b = 0; b < batches.size(); ++b) {
      if (!gather(*batches[b], works[b])) return false;
    }
    if (auto ok = launch_fused(std::span(works).first(batches.size()), stream); !ok) return tl::unexpected(ok.error());
    return true;
  }

 private:
  // Whether there is work for one kernel: of two elements at least.
  bool gather(const engine::Batch& batch, FusedWork& work) const {
    work.count = batch.count;
    for (Fusable* const element : elements_) {
      if (!element->join(batch, work)) return false;
    }
    return work.parts() >= 2;
  }

  const std::vector<Fusable*> elements_;
};

// Whose batches are launched together, as of any lane, even where only one of several elements has device work. For one
// element alone that does not pay; what only watches others does not count.
std::unique_ptr<engine::Fusion> make_fused_pass(std::span<engine::Element* const> elements) {
  std::vector<Fusable*> fusable;
  unsigned parts = 0;
  for (engine::Element* const element : elements) {
    const engine::Shape shape = element->shape();
    parts += shape.bytes_per_frame != 0 || shape.ends_chain ? 1 : 0;
    if (!shape.on_device) continue;
    fusable.push_back(element->trait<Fusable>());
    if (fusable.back() == nullptr) return nullptr;
  }
  const bool pays = !fusable.empty() && parts > 1;
  return pays ? std::make_unique<FusedPass>(std::move(fusable)) : nullptr;
}

const bool registered = engine::register_fusion(make_fused_pass);

}  // namespace
}  // namespace sluice::function
