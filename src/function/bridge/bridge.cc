#include "function/bridge/bridge.h"

namespace sluice::function {
namespace {

const bool registered = engine::register_element(
    {.name = "bridge",
     .text = "sends every frame from its port to the port's peer, unchanged: a wire that a chain can watch",
     .make = [](Settings&, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Bridge>(peers_of(ports));
     },
     .options =
         [] {
           return std::vector{OptionSection{"[bridge]", "No keys."}};
         },
     .ends_chain = true});

}  // namespace
}  // namespace sluice::function
