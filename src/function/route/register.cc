// The router's entry in the list of elements.
#include "engine/element.h"
#include "function/route/route.h"
#include "function/route/route_settings.h"

namespace sluice::function {
namespace {

const bool registered = engine::register_element(
    {.name = "route",
     .text = "IPv4 and IPv6 router",
     .make = [](Settings& settings, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Router>(read_route(settings, ports), ports);
     },
     .options = route_sections,
     .ends_chain = true});

}  // namespace
}  // namespace sluice::function
