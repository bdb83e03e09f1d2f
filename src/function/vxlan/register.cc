// The element's entry in the list of elements: reads [vxlan].
#include "engine/element.h"
#include "function/vxlan/vxlan.h"

namespace sluice::function {
namespace {

const bool registered = engine::register_element(
    {.name = "vxlan",
     .text = "ends VXLAN tunnels: each is a port of its own, whose device is \"vxlan\"",
     .make = [](Settings& settings, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Vxlan>(read_tunnels(settings, ports), ports);
     },
     .options = vxlan_sections,
     .has_ports = true});

}  // namespace
}  // namespace sluice::function
