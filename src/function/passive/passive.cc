#include "function/passive/passive.h"

namespace sluice::function {
namespace {

const bool registered = engine::register_element(
    {.name = "passive",
     .text = "forwards nothing: for chains that only look, at captures and mirrored ports",
     .make = [](Settings&, const engine::PortTable&) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Passive>();
     },
     .options =
         [] {
           return std::vector{OptionSection{"[passive]", "No keys."}};
         },
     .ends_chain = true});

}  // namespace

void Passive::apply(engine::Batch& batch, engine::Span span, engine::Emitter& /*out*/) {
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (batch.goes_on(i)) batch.drop(i, passive_seen);
  }
}

}  // namespace sluice::function
