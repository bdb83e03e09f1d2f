#include "function/passive/passive.h"

#include "engine/batch_writer.h"
#include "engine/burst.h"
#include "engine/emitter.h"

namespace sluice::function {
namespace {

const bool registered =
    engine::register_function({"passive", "forwards nothing: for chains that only look, at captures and mirrored ports",
                               [](Settings&, const engine::PortTable&) -> Expected<std::unique_ptr<engine::Function>> {
                                 return std::make_unique<Passive>();
                               }});

}  // namespace

void Passive::collect(engine::Burst& burst, engine::BatchWriter& writer) {
  engine::BatchRows rows(writer.batch());
  for (unsigned i = 0; i < burst.size(); ++i) rows.append(burst, i, 0);
}

void Passive::forward(engine::Batch& batch, std::uint32_t first, std::uint32_t count, engine::Emitter& out) {
  for (std::uint32_t i = first; i < first + count; ++i) out.drop(batch, i, passive_seen);
}

}  // namespace sluice::function
