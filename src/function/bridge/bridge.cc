#include "function/bridge/bridge.h"

#include "engine/function.h"

namespace sluice::function {
namespace {

const bool registered = engine::register_function(
    {"bridge", "sends every frame from its port to the port's peer, unchanged: a wire that a chain can watch",
     [](Settings&, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Function>> {
       return std::make_unique<Bridge>(peers_of(ports));
     }});

}  // namespace
}  // namespace sluice::function
